"""`_jst`: all that converted code calls. Everything here decides when it runs: on Python's values
it does what Python does, on a tensor of a program it writes the program.
"""

from .calling import attr, call, item
from .choosing import caught, if_else, if_exp, trying
from .logic import and_, and_value, assert_, chain, in_, none, not_, not_in, or_, or_value
from .looping import for_loop, while_loop
from .writing import defined, writing, writing_names

__all__ = [
    "and_",
    "and_value",
    "assert_",
    "attr",
    "call",
    "caught",
    "chain",
    "defined",
    "for_loop",
    "if_else",
    "if_exp",
    "in_",
    "item",
    "none",
    "not_",
    "not_in",
    "or_",
    "or_value",
    "trying",
    "while_loop",
    "writing",
    "writing_names",
]  # fmt: skip
