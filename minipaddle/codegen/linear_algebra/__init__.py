"""Kernels that call LAPACK."""
