"""Tools for tests: gradients against central differences, the engine against itself, C played."""

from .c_in_python import played
from .engine import check_engine, samples, selfcheck
from .gradcheck import check_grad

__all__ = ["check_engine", "check_grad", "played", "samples", "selfcheck"]
