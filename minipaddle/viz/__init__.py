"""Pictures: code, tapes, models, gradients, operators, curves, profiles."""

from .code import code
from .curves import Curves
from .engine import Graph, NoEngineError
from .events import LogWriter
from .flow import gradient_flow
from .module import module
from .operator import operator
from .profile import profile
from .tape import source_lines, tape

__all__ = [
    "Curves", "Graph", "LogWriter", "NoEngineError", "code", "gradient_flow", "module", "operator",
    "profile", "source_lines", "tape",
]  # fmt: skip
