"""Programs by hand: define them once, run them many times. Source: Paddle API `paddle.static`."""

from ..engine.eager.tensor import Tensor as Variable
from ..ir.input_spec import InputSpec
from ..nn.param_attr import create_parameter
from . import amp, nn
from .executor import CompiledProgram, Executor
from .functions import *
from .io import *
from .metric import auc
from .mode import default_main_program, default_startup_program, program_guard
from .program import Program
from .strategy import BuildStrategy, ExecutionStrategy
