"""Paddle's flags: hints about speed and memory, which change no result beyond rounding; checks."""

import os

from ..engine.core.errors import value_error

FLAGS = {
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_check_nan_inf": False,
    "FLAGS_conv_workspace_size_limit": 512,
    "FLAGS_cudnn_batchnorm_spatial_persistent": False,
    "FLAGS_cudnn_deterministic": True,
    "FLAGS_cudnn_exhaustive_search": False,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_eager_kernels": os.environ.get("MINIPADDLE_BACKEND") in (None, "", "auto"),
    "FLAGS_eager_programs": False,
    "FLAGS_enable_cublas_tensor_op_math": False,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    "FLAGS_gpu_memory_limit_mb": 0,
    "FLAGS_initial_gpu_memory_in_mb": 0,
    "FLAGS_max_inplace_grad_add": 0,
    "FLAGS_reallocate_gpu_memory_in_mb": 0,
    "FLAGS_use_stride_kernel": True,
}
"""`FLAGS_eager_kernels` and `_programs` are ours: see `executors/hot/__init__.py`. Besides them,
`FLAGS_enable_cublas_tensor_op_math` and those of `SETTERS` none does anything.
"""

SETTERS: dict = {}
"""By flag: a function that is called with each new value."""


def set_flags(flags: dict) -> None:
    """Set flags by name; raises ValueError for one that MiniPaddle does not have.

    "FLAGS_eager_kernels" lets C compute the operators on large arrays that eager mode has computed
    often, which is faster, and rounds otherwise than NumPy from then on, always at the same call
    (`minipaddle.executors.hot.report()` says which). It is on, unless MINIPADDLE_BACKEND names a
    backend. "FLAGS_eager_programs" (off) does the same to whole walks back and to steps of
    optimizers. "FLAGS_check_nan_inf" lets NaN and
    infinity be errors where they begin, as `paddle.amp.debugging.enable_tensor_checker` does.
    "FLAGS_enable_cublas_tensor_op_math" lets products and convolutions of float32 on a GPU round
    their factors to TF32 (10 bits), for its tensor cores.

    >>> paddle.set_flags({"FLAGS_cudnn_exhaustive_search": False})
    """
    for name, value in flags.items():
        get_flags(name)
        if FLAGS[name] != value and name in SETTERS:
            SETTERS[name](value)
        FLAGS[name] = value


def get_flags(flags) -> dict:
    """The values of a flag or of several.

    >>> paddle.get_flags("FLAGS_cudnn_deterministic")
    {'FLAGS_cudnn_deterministic': True}
    """
    names = [flags] if isinstance(flags, str) else flags
    unknown = [name for name in names if name not in FLAGS]
    if unknown:
        raise value_error(f"MiniPaddle has no {unknown[0]}", ", ".join(FLAGS))
    return {name: FLAGS[name] for name in names}
