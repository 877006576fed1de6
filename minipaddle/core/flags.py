"""Paddle's flags: hints about speed and memory, which change no result beyond rounding."""

FLAGS = {
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_cudnn_deterministic": True,
    "FLAGS_cudnn_exhaustive_search": False,
    "FLAGS_eager_kernels": True,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
}
"""Only `FLAGS_eager_kernels` is ours and does something: see `eager_kernels.py` and `tapes.py` in
`executors`."""
