"""`_jst`: all that converted code calls. Everything here decides when it runs: on Python's values
it does what Python does, on a tensor of a program it writes the program.
"""

from .branching import if_else, if_exp
from .calling import call
from .looping import for_loop, while_loop
from .transpile import RUNTIME
from .truth import and_, and_value, none, not_, or_, or_value
from .writing import require_defined, writing, writing_names

for function in (
    call, if_else, if_exp, for_loop, while_loop, writing, writing_names,
    require_defined, and_, and_value, or_, or_value, not_, none,
):  # fmt: skip
    setattr(RUNTIME, function.__name__, function)
