"""Tools for tests: gradients against central differences, the engine's self-check, C in Python,
exported C.
"""

from .c_in_python import run_c
from .engine import check_engine, samples, selfcheck
from .exported import ExportedLibrary
from .gradcheck import check_grad
