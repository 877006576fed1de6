"""The targets of pictures: a static function, a layer, an executable, a program."""

import difflib

from ..engine.core.errors import teach, type_error, user_frame
from ..engine.ir.program import Program
from ..engine.passes.manager import Optimized, optimized


def forward_of(target):
    """The static function of a layer; anything else unchanged."""
    return getattr(target, "forward", target)


def last_executable(target):
    """The last executable of a static function; anything else unchanged."""
    return (getattr(forward_of(target), "executables", None) or [target])[-1]


def program_of(target) -> Program:
    """The program itself, or the program of a static function or layer, or of an executable."""
    target = forward_of(target)
    target = getattr(target, "__self__", target)  # of a loaded model
    program = getattr(target, "main_program", getattr(target, "program", target))
    program = program() if callable(program) and program is not target else program
    if not isinstance(program, Program):
        what = f"a picture of the program of {type(target).__name__}"
        expected = "a Program, what paddle.jit.to_static gave, or an executable of that"
        hint = "viz.tape draws what an eager computation did"
        raise type_error(what, expected=expected, hint=hint)
    return program


def passes_result_of(target) -> Optimized:
    """The program after the passes: a static function's last one, as it was compiled, or
    as its strategy would have it; an executable has it already.
    """
    if isinstance(target, Optimized):
        return target
    strategy = getattr(forward_of(target), "build_strategy", None)
    done = getattr(last_executable(target), "optimized", None)
    return done or optimized(program_of(target), strategy)


def ends_of(target) -> tuple[set, set]:
    """The results of a program, and the residuals for its backward; some values are both."""
    captured = getattr(forward_of(target), "concrete_program", None)
    if captured is None or captured.backward is None:
        return set(program_of(target).outputs), set()
    outputs, states = captured.program.outputs, {s.record for s in captured.program.states}
    return set(outputs[: captured.residuals]), set(outputs[captured.residuals :]) - states


def explorer_call(target) -> str:
    """The call that explores a target, by the name that it has in the user's code; else ""."""
    frame, explored = user_frame(), hasattr(forward_of(target), "executables")
    names = {**frame.f_globals, **frame.f_locals} if explored else {}
    own = (name for name, value in names.items() if value is target and name[0] != "_")
    return next((f"viz.explore({name})" for name in own), "")


def executable_of(target):
    """The last executable of a static function, or the executable itself."""
    what = f"{getattr(target, '__name__', type(target).__name__)} was not compiled"
    expected = "an executable, or a static function that was compiled"
    hint = 'to_static(function, backend="native"), and call it once'
    return check_has(last_executable(target), "kernels", what, expected, hint)


def static_function(target):
    """The static function itself, or a layer's; raises TypeError for anything else."""
    what = f"a picture of the cache of {type(target).__name__}"
    expected = "what paddle.jit.to_static gave: a function or a layer"
    return check_has(forward_of(target), "program_cache", what, expected)


def find_python(function):
    """The Python function of a layer or a static function."""
    python = forward_of(function)
    what = f"how {type(function).__name__} is converted"
    python = getattr(python, "dygraph_function", python)
    return check_has(python, "__code__", what, "a Python function or layer")


def check_has(found, attribute: str, what: str, expected: str, hint: str = ""):
    """The object, if it has an attribute that pictures need; else TypeError with these words."""
    if not hasattr(found, attribute):
        raise type_error(what, expected, hint=hint)
    return found


def pick(known: dict, name: str, what: str):
    """`known[name]`; raises KeyError that points to the nearest name, or to all if they are few."""
    if name in known:
        return known[name]
    near = "".join(map(repr, difflib.get_close_matches(str(name), known, 1)))
    raise KeyError(teach(f"no {what} {name!r}", ", ".join(known) * (len(known) < 50), hint=near))
