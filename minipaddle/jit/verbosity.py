"""Print the steps of a conversion: `set_code_level`, `set_verbosity`."""

import ast
import os
import sys

from ..engine.jit.transpile import WATCHERS
from .stages import stages

FINAL = 100


class Levels:
    """The texts to print, and whether to standard output too."""

    code = int(os.environ.get("TRANSLATOR_CODE_LEVEL", -1))
    verbosity = int(os.environ.get("TRANSLATOR_VERBOSITY", 0))
    stdout = False


def set_code_level(level: int = FINAL, also_to_stdout: bool = False) -> None:
    """Print each converted function's code after converter number `level`; 100 is the last.

    >>> paddle.jit.set_code_level(-1)
    """
    Levels.code, Levels.stdout = level, also_to_stdout
    watch()


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Print conversions: 0 nothing, 1 the function, 2 its source too, 3 after every converter.

    >>> paddle.jit.set_verbosity(0)
    """
    Levels.verbosity, Levels.stdout = level, also_to_stdout
    watch()


def watch() -> None:
    """Watch conversions as long as there is something to print."""
    on = Levels.code >= 0 or Levels.verbosity
    WATCHERS[:] = [each for each in WATCHERS if each is not tell] + [tell] * bool(on)


def tell(function) -> None:
    """Print the code that the levels select."""
    code, trees = function.__code__, stages(function)
    where = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if Levels.verbosity:
        say(f"converting {where}")
    if Levels.verbosity > 1:
        say(ast.unparse(trees[0].before))
    if Levels.verbosity > 2:
        for stage in trees:
            if ast.dump(stage.before) != ast.dump(stage.after):
                say(f"after {stage.name}:\n{ast.unparse(stage.after)}")
    if Levels.code >= 0:
        stage = trees[min(Levels.code, len(trees)) - 1]
        say(f"code of {where} after {stage.name}:\n{ast.unparse(stage.after)}")


def say(text: str) -> None:
    print(text, file=sys.stderr)
    if Levels.stdout:
        print(text)


watch()
