"""Tools for tests: gradients against central differences, the engine's self-check, C in Python."""

from .c_in_python import played
from .engine import check_engine, samples, selfcheck
from .gradcheck import check_grad
