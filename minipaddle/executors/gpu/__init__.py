"""Programs on GPUs: CUDA text, compiled by NVRTC, run through CuPy, in one graph of launches."""
