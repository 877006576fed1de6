"""From Python to programs."""

from ..engine.jit import runtime
from ..engine.jit.to_static import StaticFunction
from . import (
    aliasing,
    bound,
    builtin,
    converters,
    dy2static,
    either,
    hooks,
    inspection,
    marking,
    mathematics,
    numbers,
    peeling,
    printing,
    raising,
    reasons,
    second_derivatives,
    verbosity,
    windows,
)
from .decorator import enable_to_static, to_static
from .ignoring import ignore_module, not_to_static
from .loading import TranslatedLayer, load
from .saving import save
from .verbosity import set_code_level, set_verbosity
