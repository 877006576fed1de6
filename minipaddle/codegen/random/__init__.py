"""Kernels of the random generator and of draws."""
