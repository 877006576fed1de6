"""From Python to programs."""

from . import dy2static, runtime
from .ignore import ignore_module, not_to_static
from .loading import TranslatedLayer, load
from .saving import save
from .to_static import StaticFunction, enable_to_static, to_static
from .verbosity import set_code_level, set_verbosity
