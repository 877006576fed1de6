"""Pictures: code, tapes, models, gradients, operators, curves, profiles."""

from .cache import cache, recompilations
from .code import code
from .curves import Curves
from .engine import Graph, NoEngineError
from .events import LogWriter
from .flow import gradient_flow
from .joint import joint
from .memory import memory
from .module import module
from .operator import operator
from .pair import beside
from .profile import profile
from .program import program
from .tape import source_lines, tape
from .transpiling import source_diff, transpiling

__all__ = [
    "Curves", "Graph", "LogWriter", "NoEngineError", "beside", "cache", "code", "gradient_flow",
    "joint", "memory", "module", "operator", "profile", "program", "recompilations", "source_diff",
    "source_lines", "tape", "transpiling",
]  # fmt: skip
