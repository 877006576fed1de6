"""What a side that is not taken, or a loop that runs no round, must not do: errors, undefined
names. When it is taken, the program raises what eager mode raises, at the user's line.
"""

import ast
import inspect
import linecache
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from tests.jit.examples import told


def tensors(n):
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    return x, paddle.to_tensor(n)


def line(function, mark: str) -> int:
    """The number of the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, text in enumerate(lines) if mark in text)


def same_as_eager(function, n):
    """Both give the same value, or raise the same error; the program's names the user's line."""
    static = paddle.jit.to_static(function)
    try:
        expected = function(*tensors(n))
    except Exception as error:
        with pytest.raises(type(error)) as found:
            static(*tensors(n))
        message = str(error.args[0]).splitlines()[0].removesuffix(" in enclosing scope")
        assert message.rpartition("variable ")[2] in told(found.value)
        mark = f"line {line(function, '# here')}, in "
        assert mark in told(found.value), found.value
        return
    assert static(*tensors(n)).tolist() == expected.tolist()


def raise_in_a_loop(x, n):
    while n > 0:
        x = x * 2
        if x.shape[0] == 3:
            raise ValueError("in the loop")  # here
        n = n - 1
    return x


def assert_in_a_loop(x, n):
    for _ in range(n):
        assert x.shape[0] == 2, "two"  # here
        x = x * 2
    return x


def raise_in_a_later_round(x, n):
    rounds = 0
    while n > 0:
        rounds += 1
        if rounds > 2:
            raise ArithmeticError("three rounds")  # here
        n = n - 1
        x = x + rounds
    return x


def raise_in_the_test(x, n):
    rounds = [1]
    while n > 0 and 1 / rounds[0]:  # here
        rounds[0] = 0
        n = n - 1
    return x


def division_on_one_side(x, n):
    p = 0
    if n > 2:
        p = 1 // p  # here
    return x * p


def index_on_one_side(x, n):
    items = [x]
    return items[3] if n > 2 else x  # here


def key_on_one_side(x, n):
    if n > 2:
        return {"a": x}["b"]  # here
    return x


def name_on_one_side(x, n):
    if n > 2:
        return x * unknown  # noqa: F821  # here
    return x


def types_on_one_side(x, n):
    if n > 2 and 1 + None:  # here
        return x * 2
    return x


def shapes_on_one_side(x, n):
    if n > 2:
        return x + paddle.ones([4])  # here
    return x


def division_in_a_nested_loop(x, n):
    for k in range(n):
        while k > 1:
            k = k - 1 // (x.shape[0] - 3)  # here
    return x


def index_in_a_python_loop_that_a_tensor_ends(x, n):
    items = [x, x * 2]
    for k in range(4):
        if n <= k:
            break
        x = x + items[k]  # here
    return x


def bound_in_a_while(x, n):
    while n > 1:
        y = x * n
        n = n - 1
    return y  # here


def bound_in_a_for(x, n):
    for k in range(1, n):
        y = x * k
    x = x + k  # here
    return x + y


def bound_before_a_break(x, n):
    for k in range(4):
        if k > n:
            break
        if k * 2 >= n:
            found = k
            break
    return x * found  # here


def bound_where_found(x, n):
    seen = False
    for item in range(n):
        if item > 1:
            place, seen = item, True
            break
    if seen:
        x = x * place
    return x


def bound_in_the_inner_loop(x, n):
    for k in range(n):
        for j in range(k):
            y = x * (k + j)
    return y  # here


def bound_by_the_round_before(x, n):
    for k in range(n):
        if n > 2:
            x = x + y  # noqa: F821  # here
        y = x * k  # noqa: F841
    return x


def bound_by_either_of_two_loops(x, n):
    for k in range(n):
        y = x * k
    for j in range(n - 2):
        y = x * 10 * j
    return y  # here


def bound_again_on_one_side(x, n):
    for k in range(n):
        y = x * k
    if n < 2:
        y = x * 100
    return y


def read_by_a_closure(x, n):
    def add():
        return x + y  # here

    while n > 0:
        y = x * n
        n = n - 1
    return add()


def changed_in_place(x, n):
    while n > 0:
        y = x * n
        n = n - 1
    y += 1  # here
    return y


def written_in_place(x, n):
    while n > 0:
        y = x * n
        n = n - 1
    y[0] = 5.0  # here
    return y


def asked_for_its_truth(x, n):
    while n > 1:
        y = n > 2
        n = n - 1
    return x if y else -x  # here


def a_pair(x, n):
    while n > 1:
        y = x, n
        n = n - 1
    return y[0] * y[1]  # here


def a_dict_of_an_inner_loop(x, n):
    for _ in range(2):
        for _ in range(1, n):
            for k in range(2):
                d = {"a": x * k, "b": "text"}
            x = x + d["a"]
    if n > 3:
        x = x + d["a"]
    return x


def a_list_of_either_loop(x, n):
    for k in range(n - 1):
        items = [x * k, x]
    for k in range(n - 2):
        items = [x + k, x + n]
    return items[0] + items[1]  # here


FUNCTIONS = [
    raise_in_a_loop, assert_in_a_loop, raise_in_a_later_round, division_on_one_side,
    index_on_one_side, key_on_one_side, name_on_one_side, types_on_one_side, shapes_on_one_side,
    division_in_a_nested_loop, index_in_a_python_loop_that_a_tensor_ends,
    bound_in_a_while, bound_in_a_for, bound_before_a_break, bound_where_found,
    bound_in_the_inner_loop, bound_by_the_round_before, bound_by_either_of_two_loops,
    bound_again_on_one_side, read_by_a_closure, changed_in_place, written_in_place,
    asked_for_its_truth, a_pair, a_dict_of_an_inner_loop, a_list_of_either_loop,
]  # fmt: skip


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_errors_are_raised_where_they_are_reached(function, n):
    same_as_eager(function, n)


def test_what_cannot_be_traced_is_refused_before_anything_runs():
    def value_on_one_side(x, n):
        if n > 2:
            return x * np.linalg.norm(x.numpy())  # here
        return x

    with pytest.raises(TypeError, match="has no value yet"):
        paddle.jit.to_static(value_on_one_side)(*tensors(0))


def test_a_try_around_catches_nothing_that_a_program_raises():
    def caught(x, n):
        try:
            while n > 0:
                x = x / (1 // 0)
        except ZeroDivisionError:
            x = x * 2
        return x

    with pytest.raises(Exception, match="nothing can catch it"):
        paddle.jit.to_static(caught)(*tensors(0))


def caught_as_any(x, n):
    try:
        if n > 0:
            raise ValueError("bad")
        x = x * 2
    except Exception:
        x = x * 0
    return x


def caught_bare(x, n):
    try:
        if n > 0:
            raise ValueError("bad")
        x = x * 2
    except:  # noqa: E722
        x = x * 0
    return x


def raised_as_another(x, n):
    try:
        if n > 0:
            raise ValueError("bad")
    except Exception as error:
        raise KeyError("no program says so") from error
    return x


LEFT_BY_FINALLY = """
def left_by_finally(x, n):
    try:
        if n > 0:
            raise ValueError("bad")
    except KeyError:
        x = x * 2
    except Exception:
        x = x * 3
    finally:
        return x
"""  # a file that says this warns on Python 3.14


REFUSED_BEFORE_A_HANDLER = [caught_as_any, caught_bare, raised_as_another]


@pytest.mark.parametrize("function", REFUSED_BEFORE_A_HANDLER)
def test_no_handler_of_the_users_swallows_a_refusal(function):
    static = paddle.jit.to_static(function)
    for _ in range(2):
        with pytest.raises(Dygraph2StaticException, match="nothing can catch it"):
            static(*tensors(0))


@pytest.mark.filterwarnings("ignore:'return' in a 'finally' block:SyntaxWarning")
def test_no_return_in_finally_swallows_a_refusal():
    linecache.cache["<finally>"] = (1, None, LEFT_BY_FINALLY.splitlines(True), "<finally>")
    space = {}
    exec(compile(LEFT_BY_FINALLY, "<finally>", "exec"), space)
    test_no_handler_of_the_users_swallows_a_refusal(space["left_by_finally"])


def value_in_a_try(x, n):
    try:
        y = x * np.linalg.norm(x.numpy())
    except Exception:
        y = x * 0
    return y


def view_before_a_change(x, n):
    z = x * 1.0
    y = z[0:2]
    z.add_(paddle.ones([3]))
    try:
        z = y + 1
    except NotImplementedError:
        z = z * 0
    return z


def change_of_what_was_chosen(x, n):
    y = x * 1.0
    z = x if n > 0 else y
    try:
        z.add_(x)
        y = y + 1
    except NotImplementedError:
        y = y * 0
    return y


def change_of_a_view(x, n):
    x = x.detach()
    y = x[0:2]
    try:
        y.add_(paddle.ones([2]))
    except Exception:
        y = y * 0
    return y


def list_that_grew(x, n):
    items = []
    while n > 0:
        items.append(x)
        n = n - 1
    try:
        first, *_ = items
        y = first * 2
    except Exception:
        y = x * 0
    return y


def escaped(x, n):
    kept = []

    @paddle.jit.not_to_static
    def keep(y):
        kept.append(y)

    try:
        if n > 0:
            keep(x * 2)
        return kept[0] + 1
    except Exception:
        return x * 0


def caught_in_a_group(x, n):
    y = x
    try:
        y = x * np.linalg.norm(x.numpy())
    except* TypeError:
        y = x * 0
    return y


ONLY_A_TRACE_RAISES = [
    value_in_a_try, view_before_a_change, change_of_what_was_chosen, change_of_a_view,
    list_that_grew, escaped, caught_in_a_group,
]  # fmt: skip


@pytest.mark.parametrize("function", ONLY_A_TRACE_RAISES, ids=lambda f: f.__name__)
def test_what_only_a_trace_raises_ends_it(function):
    with pytest.raises(Exception, match=rf"line \d+, in {function.__name__}"):
        paddle.jit.to_static(function)(*tensors(2))


def test_sizes_that_only_a_run_knows_are_caught_by_no_handler():
    def padded(x):
        try:
            return x + paddle.zeros([int(x.shape[0]) // 1])
        except (TypeError, ValueError):
            return x * 0

    def matched(x, y):
        try:
            return x.reshape([2, -1]) + y.reshape([3, -1])
        except ValueError:
            return x * 0

    spec = [paddle.static.InputSpec([None], name=name) for name in "xy"]
    x = paddle.ones([6])
    assert paddle.jit.to_static(padded, input_spec=spec[:1])(x).tolist() == [1.0] * 6
    with pytest.raises(ValueError, match="broadcast"):
        paddle.jit.to_static(matched, input_spec=spec)(x, x)


def test_no_handler_runs_after_a_refusal():
    handled = []

    def logged(x, n):
        try:
            if n > 0:
                raise ValueError("bad")
        except Exception:
            handled.append("a line of a log")
            raise
        return x

    with pytest.raises(Dygraph2StaticException, match="nothing can catch it"):
        paddle.jit.to_static(logged)(*tensors(0))
    assert not handled


@pytest.mark.parametrize("n", [0, 3])
def test_what_a_program_checks_is_caught_by_no_handler(n):
    def asserted(x, n):
        try:
            assert n > 2
        except AssertionError:
            x = x * 0
        return x

    def unbound(x, n):
        while n > 0:
            y = x * n
            n = n - 1
        try:
            x = x + y
        except NameError:
            x = x * 0
        return x

    for function in (asserted, unbound):
        with pytest.raises(Dygraph2StaticException, match="nothing can catch it"):
            paddle.jit.to_static(function)(*tensors(n))


def test_a_probe_of_an_object_is_no_refusal():
    def probed(x):
        found = [hasattr(x, name) for name in ("numpy", "no_such", "__array__", "__len__")]
        return x * sum(found)

    x = paddle.ones([2])
    assert paddle.jit.to_static(probed)(x).tolist() == probed(x).tolist()


TRACING = ["engine/ir/builder", "engine/eager/aliases", "engine/eager/control_flow",
           "eager/custom", "eager/hosting", "eager/numbers", "eager/sizes", "engine/eager/tracer",
           "engine/core/polynomial", "engine/core/dim",
           *(f"engine/jit/{name}" for name in ("aliasing", "branching", "calling", "effects",
             "journal", "leaves", "looping", "maybe_undefined", "truth",
             "writing")),
           *(f"jit/{name}" for name in ("aliasing", "builtin", "either", "numbers", "outside",
             "peeling", "printing", "raising", "reading", "sequences", "snapshot", "texts")),
           "jit/converters/assertions", "tensor/growing_lists", "tensor/sequences"]  # fmt: skip
"""The modules that work only while a program is traced."""
NOTING = {"note_refusal", "refusal", "unsupported_error", "no_value_error", "no_number_error",
          "mismatch", "refused", "disagreement", "too_large", "no_array_error"}  # fmt: skip
RETRYING = {"Retrace", "PeelFirst", "Raised", "BranchError", "CarriedError"}
"""The runtime catches these itself, below the user's frames."""
EAGER_TOO = {
    ("builder", "AttributeError"): "what a missing protocol of NumPy gives",
    ("tracer", "explained"): "what an operator says of sizes that are known",
    ("tracer", "leaf_write_error"): "eager mode raises it, too",
    ("sizes", "type_error"): "sizes in a float tensor",
    ("control_flow", "value_error"): "a condition of several elements",
    ("control_flow", "ValueError"): "a body's mistake",
    ("polynomial", "ZeroDivisionError"): "a size divided by 0",
    ("sequences", "type_error"): "range() of a float tensor",
    ("texts", "type_error"): "a text + a number",
    ("maybe_undefined", "kind"): "the variable has no value for certain",
    ("assertions", "AssertionError"): "the user's assertion on a Python value",
    ("raising", "raised.error"): "the user's error in an iteration that runs for certain",
    ("effects", "getattr"): "the user's error, when the program runs",
}


def test_every_error_of_tracing_is_noted():
    package, unused = Path(paddle.__file__).parent, dict(EAGER_TOO)
    for module in TRACING:
        path = package / f"{module}.py"
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Raise) and node.exc):
                continue
            called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = ast.unparse(called).removeprefix("self.")
            if name in NOTING | RETRYING:
                continue
            reason = (path.stem, name.partition("(")[0])
            assert reason in EAGER_TOO, f"{path}:{node.lineno}: raise note_refusal({name}(...))"
            unused.pop(reason, None)
    assert not unused


def test_no_context_swallows_a_refusal():
    def suppressed(x, n):
        y = x
        with suppress(Exception):
            if n > 0:
                y = x
            else:
                y = "text"
        return y

    with pytest.raises(Dygraph2StaticException, match="same kind of value on both sides"):
        paddle.jit.to_static(suppressed)(*tensors(0))


def test_no_handler_swallows_what_only_a_trace_raises():
    def hooked(x, n):
        y = x * 1.0
        try:
            if n > 0:
                y.register_hook(lambda g: g * 2)
        except Exception:
            pass
        return y.sum()

    with pytest.raises(NotImplementedError, match="a hook is registered inside a branch"):
        paddle.jit.to_static(hooked)(*tensors(1))


def test_sizes_that_only_a_run_knows_decide_no_error():
    def different(x, y, n):
        return x + y if n > 2 else x

    spec = [paddle.static.InputSpec([None], name=name) for name in "xy"]
    static = paddle.jit.to_static(
        different, input_spec=[*spec, paddle.static.InputSpec([], "int64")]
    )
    x = paddle.ones([3])
    assert static(x, x, paddle.to_tensor(3)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("size", [3, None])
def test_a_leaf_changed_in_place(n, size):
    def leaf(x, n):
        while n > 0:
            x[0] = x[1]  # here
            n = n - 1
        return x

    spec = [paddle.static.InputSpec([size]), paddle.static.InputSpec([], "int64")]
    static = paddle.jit.to_static(leaf, input_spec=spec)
    if not n:
        assert static(*tensors(n)).tolist() == [1.0, 2.0, 3.0]
        return
    with pytest.raises(ValueError, match="in-place change of an argument") as found:
        static(*tensors(n))
    assert f"line {line(leaf, '# here')}, in leaf" in told(found.value)


def loss_of_what_is_positive(x, n):
    if n > 0:
        loss = (x * n).sum()
    else:
        loss = paddle.zeros([1])
    return loss + x.max()


def early_return(x, n):
    if n <= 0:
        return paddle.zeros([1])
    return (x * n).sum()


@pytest.mark.parametrize("function", [loss_of_what_is_positive, early_return])
def test_a_number_with_an_axis_on_one_side(function):
    static = paddle.jit.to_static(function)
    results = []
    for f in (function, static):
        x, n = tensors(2.0)
        f(x, n).backward()
        results.append((f(x, n).shape, f(x, n).item(), x.grad.tolist()))
        y = f(*tensors(-2.0))
        results.append((y.shape, y.item()))
    assert results[:2] == results[2:]
    assert len(static.program_cache) == 1


def test_other_shapes_of_one_element():
    def corner(x, n):
        return (x[:1] if n > 0 else paddle.zeros([1, 1])) + 1

    static = paddle.jit.to_static(corner)
    for n in (2.0, -2.0):
        assert static(*tensors(n)).tolist() == corner(*tensors(n)).tolist()


def test_where_wants_a_tensor():
    with pytest.raises(TypeError, match="where was given the condition True"):
        paddle.where(True, paddle.ones([1]), paddle.ones([1]))


class Holder:
    pass


@pytest.mark.parametrize("n", [2, 3])
def test_what_is_no_variable_is_checked_where_it_is_used(n):
    def attribute(x, n):
        holder = Holder()
        while n > 1:
            holder.y = x * n
            n = n - 1
        return holder.y

    static = paddle.jit.to_static(attribute)
    assert static(*tensors(n)).tolist() == attribute(*tensors(n)).tolist()
    with pytest.raises(AttributeError, match=r"Holder.y` has no value: .* ran no iteration"):
        static(*tensors(0))


def test_gradients_of_what_a_loop_binds():
    static = paddle.jit.to_static(bound_in_the_inner_loop)
    grads = []
    for function in (bound_in_the_inner_loop, static):
        x, n = tensors(3)
        function(x, n).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]
