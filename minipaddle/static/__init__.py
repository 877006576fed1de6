"""Programs by hand: define them once, run them many times. Source: Paddle API `paddle.static`."""

from ..core.missing import namespace
from ..engine.eager.tensor import Tensor as Variable
from ..engine.ir.input_spec import InputSpec
from ..nn.param_attr import create_parameter
from . import amp, nn
from .executor import CompiledProgram, Executor
from .functions import *
from .io import *
from .mode import default_main_program, default_startup_program, program_guard
from .program import Program
from .strategy import BuildStrategy, ExecutionStrategy

__all__ = [
    "BuildStrategy", "CompiledProgram", "ExecutionStrategy", "Executor", "InputSpec", "Program",
    "Scope", "Variable", "amp", "append_backward", "cpu_places", "create_parameter", "data",
    "default_main_program", "default_startup_program", "global_scope", "gradients", "load",
    "load_inference_model", "name_scope", "nn", "program_guard", "save", "save_inference_model",
]  # fmt: skip

__getattr__ = namespace("paddle.static", globals())
