"""From Python to programs."""

from . import runtime, dy2static
from .ignore import ignore_module, not_to_static
from .verbosity import set_code_level, set_verbosity
