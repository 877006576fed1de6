"""Kernels along rows and lines of arrays: other forms of a nest, scans, sorting."""
