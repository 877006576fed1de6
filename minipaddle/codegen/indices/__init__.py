"""Kernels that read or write at indices, copy slices, count values."""
