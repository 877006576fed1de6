"""Programs as CUDA: the loop nests and formulas of C, as kernels of many threads."""
