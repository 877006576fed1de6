"""In-place changes of a tensor that has two names, one of which a tensor chose: as in eager mode,
or refused at the user's line before anything runs.
"""

import inspect
import operator

import pytest

import minipaddle as paddle
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.jit.refusal import Dygraph2StaticException
from minipaddle.jit.aliasing import Strict
from tests.jit.examples import told


def tensors(n):
    return paddle.to_tensor([1.0, 2.0, 3.0]), paddle.to_tensor(n)


def two_branches(x, n):
    a, b = x * 1, x * 2
    if n > 2:
        z = a
    else:
        z = b
    z[0] = 9.0  # here
    return a + z


def conditional_expression(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    z.add_(x)  # here
    return b


def nested_choices(x, n):
    a, b, c = x * 1, x * 2, x * 3
    z = (a if n > 2 else b) if n > 1 else c
    z.zero_()  # here
    return a


def choice_of_a_choice(x, n):
    a, b, c = x * 1, x * 2, x * 3
    y = a if n > 2 else b
    z = y if n > 1 else c
    z.zero_()  # here
    return a


def the_original_is_changed(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    a.add_(x)  # here
    return z


def an_argument(x, n):
    if n > 2:
        x = x * 2
    x[0] = 5.0  # here
    return x


OUTER = paddle.ones([3])


def a_tensor_of_the_outside(x, n):
    z = OUTER if n > 2 else x * 1
    z += 1
    z[1] = 5.0
    y = OUTER if n > 2 else x * 1
    y[1] = 5.0  # here
    return y


def given_back_by_a_function(x, n):
    def large(v):
        if n > 2:
            return v
        return v * 2

    a = x * 1
    z = large(a)
    z[0] = 5.0  # here
    return a, z


def a_loop_that_may_run_no_round(x, n):
    a = z = x * 1
    while n > 0:
        z = z * 2
        n = n - 1
    z[0] = 5.0  # here
    return a + z


def the_first_round_changes_what_came_in(x, n):
    a = z = x * 1
    while n > 0:
        z[0] = 5.0  # here
        z = z * 2
        n = n - 1
    return a + z


def a_later_round_changes_what_a_round_reads(x, n):
    a, z = x * 1, x * 2
    while n > 0:
        y = a * 2
        z[0] = 5.0  # here
        z = a
        n = n - 1
    return y + z


def a_name_for_what_later_rounds_change(x, n):
    a, best = x * 1, x * 2
    while n > 0:  # here
        a.add_(x)
        best = a
        n = n - 1
    return best


def a_name_that_comes_to_another_place_in_a_round(x, n):
    y = x * 1
    a, b = y, x * 2
    for _ in range(n):
        a, b = b, a
        a.add_(x)  # here
    return y


def a_choice_in_a_branch(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    if n > 0:
        z[0] = 5.0  # here
        y = a * 2
    else:
        y = x
    return y


def a_list_indexed_by_a_tensor(x, n):
    items = [x * 1, x * 2]
    z = items[n % 2]
    z[0] = 5.0  # here
    return items[0]


REFUSED = [
    f
    for name, f in list(globals().items())
    if inspect.isfunction(f) and name not in ("tensors", "told")
]


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refused_at_the_users_line(function):
    lines, first = inspect.getsourcelines(function)
    line = first + next(k for k, text in enumerate(lines) if "# here" in text)
    with pytest.raises(NotImplementedError, match="a condition or a loop on a tensor chose") as e:
        paddle.jit.to_static(function)(*tensors(3))
    assert f"line {line}, in {function.__name__}" in told(e.value)
    assert "clone() it before the change" in str(e.value)


def the_others_are_not_used_any_more(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    z[0] = 9.0
    return z


def the_same_on_both_sides(x, n):
    a = z = x * 1
    if n > 2:
        y, z = x, a
    else:
        y, z = x * 2, a
    z[0] = 9.0
    return a + z + y


def copies(x, n):
    a, b = x * 1, x * 2
    z = a.clone() if n > 2 else b.clone()
    z[0] = 9.0
    return a + b + z


def swapped_in_a_loop(x, n):
    a, b = x * 1, x * 2
    while n > 0:
        a, b = b, a * 2
        n = n - 1
    return a - b


def filled_in_a_loop_and_returned_early(x, n):
    out = x * 0
    for k in range(n):
        out[k % 3] = x[k % 3]
        if k > 2:
            return out
    return out


def used_before_the_change(x, n):
    a, b = x * 1, x * 2
    y = a + b
    z = a if n > 2 else b
    z += y
    z.scale_(2.0)
    return z + y


def traced_twice(x, n):
    a, z, count = x * 1, x * 2, 0
    while n > count:
        z = a if count > 2 else z
        z = z.clone()
        z[0] = 5.0
        a = a + z
        count = count + 1.0
    return a + z


SAME = [
    the_others_are_not_used_any_more, the_same_on_both_sides, copies, swapped_in_a_loop,
    filled_in_a_loop_and_returned_early, used_before_the_change, traced_twice,
]  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("function", SAME, ids=lambda f: f.__name__)
def test_same_as_eager(function, n):
    static = paddle.jit.to_static(function)
    assert static(*tensors(n)).tolist() == function(*tensors(n)).tolist()


def test_views_of_views():
    def f(x):
        y = x * 1
        part = y[0:2][0:1]
        y.add_(x)
        return part

    with pytest.raises(NotImplementedError, match="a view of a tensor that was changed in place"):
        paddle.jit.to_static(f)(paddle.ones([3]))


@pytest.mark.parametrize("key", [lambda n: n, lambda n: (n, n), lambda n: (slice(1, 3), n)])
def test_views_at_places_that_only_a_run_knows(key):
    """In eager mode `m[n]` is a view for a tensor n too; in a program it is refused where it
    would have to be one, and nowhere else."""

    def written(m, n):
        part = m[key(n)]
        part.zero_()
        return m

    def written_behind(m, n):
        part = m[key(n)]
        m.zero_()
        return part

    def same(m, n):
        part = m[key(n)]
        m[key(n)] = part * 2
        taken, m = m[n, [0, 1]], m + 1
        taken[0] = 5.0
        return m, taken

    def tensors():
        return paddle.arange(9.0).reshape([3, 3]), paddle.to_tensor(1)

    assert written(*tensors()).sum() < 36
    assert written_behind(*tensors()).sum() == 0
    with pytest.raises(NotImplementedError, match="an in-place change of a view, in a program"):
        paddle.jit.to_static(written)(*tensors())
    with pytest.raises(NotImplementedError, match="a view of a tensor that was changed in place"):
        paddle.jit.to_static(written_behind)(*tensors())
    for a, b in zip(paddle.jit.to_static(same)(*tensors()), same(*tensors()), strict=True):
        assert a.tolist() == b.tolist()


def test_memory_gets_its_past_in_an_inner_loop():
    def nested(x, y, state):
        for _ in x:
            y = y + state
            for _ in x:
                state.add_(x)
        return y

    def gradient(f):
        x, y = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False), paddle.ones([3])
        f(x, y, paddle.zeros([3]) * 1).sum().backward()
        return x.grad.tolist()

    spec = paddle.static.InputSpec(["n"])
    open_sizes = paddle.jit.to_static(nested, input_spec=[spec] * 3)
    assert gradient(open_sizes) == gradient(nested) == [9.0, 9.0, 9.0]


# ---- lists, and what is the same object ----------------------------------------------------------


def a_list_of_two_names(x, n):
    a, b = [1.0], [2.0]
    z = a if n > 2 else b
    z[0] = 5.0  # here
    return a[0] + x


def a_list_that_an_if_binds(x, n):
    a, b = [x], [x * 2]
    if n > 2:
        z = b
    else:
        z = a
    z.append(x)  # here
    return a[-1] + b[-1]


def a_list_whose_choice_is_read(x, n):
    a, b = [x], [x * 2]
    z = a if n > 2 else b
    a[0] = x * 3  # here
    return z[0]


@pytest.mark.parametrize(
    "function", [a_list_of_two_names, a_list_that_an_if_binds, a_list_whose_choice_is_read]
)
def test_a_write_to_a_chosen_list_is_refused_at_its_line(function):
    lines, first = inspect.getsourcelines(function)
    line = first + next(k for k, text in enumerate(lines) if "# here" in text)
    with pytest.raises(
        Dygraph2StaticException, match="a condition or a loop on a tensor chose"
    ) as e:
        paddle.jit.to_static(function)(*tensors(3))
    assert f":{line}, in {function.__name__}" in str(e.value)


def lists_not_used_any_more(x, n):
    a, b = [x], [x * 2]
    z = a if n > 2 else b
    z.append(x)
    return z[0] + z[1]


def another_list(x, n):
    a, b = [x], [x * 2]
    z = a if n > 2 else b
    y = z[0]
    a[0] = x * 3
    return b[0] + y


def chosen_boolean(x, n):
    yes = False
    if n > 2:
        yes = True
    return x * 2 if yes is True else x * 3


def boolean_of_a_loop(x, n):
    done = False
    while n > 2:
        done, n = True, n - 1
    return x * 2 if done is not False else x * 3


def tensor_is_no_boolean(x, n):
    return x * 2 if (n > 2) is True else x * 3


def chosen_boolean_by_functions(x, n):
    yes = False
    if n > 2:
        yes = True
    return x * 2 if operator.is_(yes, True) and operator.truth(x[0]) else x * 3


def two_that_are_not_chosen(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    return z * 2 if a is b or a is not x else z * 3


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    "function",
    [lists_not_used_any_more, another_list, chosen_boolean, boolean_of_a_loop,
     tensor_is_no_boolean, two_that_are_not_chosen, chosen_boolean_by_functions],
)  # fmt: skip
def test_identity_is_as_in_eager_mode(function, n):
    found = paddle.jit.to_static(function)(*tensors(n))
    assert found.tolist() == function(*tensors(n)).tolist()


def which_tensor(x, n):
    a, b = x * 1, x * 2
    z = a if n > 2 else b
    return x * 2 if z is a else x * 3


def which_list(x, n):
    a, b = [x], [x * 2]
    z = b
    if n > 2:
        z = a
    return x * 2 if 1 < 2 and z is not b else x * 3


def which_after_a_loop(x, n):
    a = z = x * 1
    while n > 2:
        z, n = x * 2, n - 1
    return x * 2 if z is a else x * 3


def which_of_a_loop(x, n):
    a, z = x * 1, x * 2
    while n > 2:
        z, n = a, n - 1
    return x * 2 if z is a else x * 3


def which_in_a_list(x, n):
    a, b = x * 1, x * 2
    z = [a] if n > 2 else [b]
    return x * 2 if z[0] is a else x * 3


def number_or_boolean(x, n):
    z = 1 if n > 2 else True
    return x * 2 if z is True else x * 3


@pytest.mark.parametrize(
    "function",
    [which_tensor, which_list, which_after_a_loop, which_of_a_loop, which_in_a_list,
     number_or_boolean],
)  # fmt: skip
def test_identity_that_only_a_run_knows(function):
    lines, first = inspect.getsourcelines(function)
    with pytest.raises(Dygraph2StaticException, match="`is` asks which of two values") as e:
        paddle.jit.to_static(function)(*tensors(3))
    assert f":{first + len(lines) - 1}, in " in str(e.value)


def test_a_list_that_many_conditions_choose_is_noted_once(monkeypatch):
    """(Each condition doubled what was noted: after twenty, tracing did not end.)"""
    replace, noted = Strict.replace, []

    def spy(self, old, new):
        replace(self, old, new)
        noted.append(max(map(len, current.top.merged.values()), default=0))

    monkeypatch.setattr(Strict, "replace", spy)

    @paddle.jit.to_static
    def chosen(x):
        a, b = [x], [-x]
        for k in range(8):
            if x.sum() > k:
                a, b = b, a
        return a[0]

    assert chosen(paddle.to_tensor([2.5])).tolist() == [-2.5]
    assert 0 < max(noted) < 40
