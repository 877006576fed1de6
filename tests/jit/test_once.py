"""What a trace takes from Python once: random numbers of Python and NumPy, items of iterators."""

import itertools
import random
import warnings

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.jit.dy2static.utils import Dygraph2StaticException

OWN, SAME = np.random.RandomState(3), random.Random(4)


def start():
    """Seed every generator that the functions below use."""
    random.seed(1)
    np.random.seed(1)
    OWN.seed(1)
    SAME.seed(1)


def drawn():
    return random.random(), np.random.rand(), OWN.rand(), SAME.random()


def seeds_both(x):
    np.random.seed(7)
    random.seed(7)
    return x + float(np.random.rand()) + random.randint(0, 9)


def seeds_its_own(x):
    OWN.seed(3)
    SAME.seed(5)
    return x + float(OWN.rand()) + SAME.random()


def sets_a_state(x):
    np.random.set_state(np.random.RandomState(5).get_state())
    return x * 2


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("function", [seeds_both, seeds_its_own, sets_a_state])
def test_a_seed_acts_in_each_call(function, backend):
    outcomes = []
    for f in (function, paddle.jit.to_static(function, backend=backend)):
        start()
        outcomes.append([])
        for _ in range(4):
            outcomes[-1] += [drawn(), f(paddle.ones([1])).item(), drawn()]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_a_seed_acts_where_a_gradient_is_wanted(backend):
    f = paddle.jit.to_static(seeds_both, backend=backend)
    start()
    for _ in range(4):
        x = paddle.ones([2])
        x.stop_gradient = False
        (f(x) * x).sum().backward()
        ended = drawn()
        assert x.grad.tolist() == (seeds_both(x) + x).tolist()
        assert drawn()[:2] == ended[:2]


def test_a_seed_that_changes_nothing_acts_too():
    """At the first call the generators stand where the seed puts them."""
    step = paddle.jit.to_static(lambda x: np.random.seed(1) or x)
    start()
    step(paddle.ones([1]))
    before = drawn()
    step(paddle.ones([1]))
    assert drawn()[1] == before[1]


def seeds_in_a_branch(x):
    if x.sum() > 0:
        np.random.seed(1)
    return x


def seeds_in_a_loop(x):
    while x.sum() > 0:
        random.seed(1)
        x = x - 1
    return x


@pytest.mark.parametrize("function", [seeds_in_a_branch, seeds_in_a_loop])
def test_a_seed_in_a_branch_is_refused(function):
    start()
    with pytest.raises(Dygraph2StaticException, match=r"seed.. of a generator of random numbers"):
        paddle.jit.to_static(function)(paddle.ones([1]))


def draws(x):
    y = x * 2
    return y + float(np.random.rand())


def draws_and_seeds(x):
    y = x + random.random()
    random.seed(4)
    return y


def draws_from_its_own(x):
    return x + SAME.random()


@pytest.mark.parametrize(
    ("function", "line"), [(draws, 2), (draws_and_seeds, 1), (draws_from_its_own, 1)]
)
def test_a_draw_is_taken_once(function, line):
    start()
    expected = function(paddle.ones([1])).item()
    start()
    step = paddle.jit.to_static(function)
    with pytest.warns(UserWarning, match="drawn from while the function is traced") as told:
        found = [step(paddle.ones([1])).item() for _ in range(3)]
    assert found == [expected] * 3
    assert [w.lineno for w in told] == [function.__code__.co_firstlineno + line]
    assert told[0].filename == __file__


def test_the_trace_advances_the_generator():
    start()
    with pytest.warns(UserWarning, match="numpy.random"):
        paddle.jit.to_static(draws)(paddle.ones([1]))
    now = np.random.rand()
    start()
    np.random.rand()
    assert np.random.rand() == now


# ---- iterators as arguments ----------------------------------------------------------------------


class Counter:
    """An iterator of the user's."""

    def __init__(self):
        self.k = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.k += 1
        if self.k > 3:
            raise StopIteration
        return self.k


def three():
    yield 1
    yield 2
    yield 3


ITERATORS = {
    "list": lambda: iter([1, 2, 3]),
    "dict": lambda: iter({1: 2, 3: 4}),
    "generator": three,
    "generator expression": lambda: (k * 2 for k in range(3)),
    "object": Counter,
    "map": lambda: map(float, [1, 2]),
    "chain": lambda: itertools.chain([1], three()),
    "islice": lambda: itertools.islice(itertools.count(2), 3),
    "tensors": lambda: iter([paddle.full([2], 2.0), paddle.full([2], -7.0)]),
}


def added(x, steps):
    for k in steps:
        x += k
    return x


def first(x, steps):
    return x + next(steps, 5)


def numbered(x, steps):
    for k, step in enumerate(steps):
        x = x + k * step if x.sum() > 3 else x - step
    return x


def ended_by_python(x, steps):
    for k, step in enumerate(steps):
        x = x + step
        if k == 1:
            break
    return x


@pytest.mark.parametrize("function", [added, first, numbered, ended_by_python])
@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_as_argument(function, make):
    """Each call takes what the last one left; also of a pair of calls with a fresh one."""
    outcomes = []
    for f in (function, paddle.jit.to_static(function)):
        outcomes.append([])
        for steps in (make(), make()):
            outcomes[-1] += [f(paddle.ones([2]), steps).tolist() for _ in range(3)]
            outcomes[-1] += [len([*steps])]
    assert outcomes[0] == outcomes[1]


def test_iterators_in_a_list_and_of_pairs():
    def paired(x, all_steps):
        for a, b in all_steps[0]:
            x = x * a + b
        return x + next(all_steps[1])

    x, made = paddle.ones([1]), lambda: [zip([1, 2], three()), three()]
    assert paddle.jit.to_static(paired)(x, made()).item() == paired(x, made()).item()


def test_a_program_of_an_iterator_serves_one_call():
    step, steps = paddle.jit.to_static(first), three()
    for _ in range(2):
        step(paddle.ones([2]), steps)
    assert "an iterator among the arguments was advanced" in step.explain()


def test_an_unused_iterator_needs_no_second_trace():
    step, steps = paddle.jit.to_static(lambda x, _: x * 2), three()
    for _ in range(2):
        step(paddle.ones([2]), steps)
    assert len(step.program_cache) == 1
    assert next(steps) == 1


def test_draws_with_an_iterator_are_those_of_the_call():
    """Each call is traced, so it draws as in eager mode, and no warning is due."""

    def both(x, steps):
        return x + next(steps) + random.random()

    outcomes = []
    for f in (both, paddle.jit.to_static(both)):
        start()
        steps = three()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcomes.append([f(paddle.ones([1]), steps).item() for _ in range(3)])
    assert outcomes[0] == pytest.approx(outcomes[1])


def test_an_argument_that_an_iterator_has_too_is_refused():
    x = paddle.ones([2])
    with pytest.raises(Dygraph2StaticException, match="an iterator has a tensor that is an arg"):
        paddle.jit.to_static(added)(x, iter([x]))


def in_a_branch(x, steps):
    if x.sum() > 0:
        x = x + next(steps)
    return x


def test_an_iterator_advanced_in_a_branch_is_refused():
    with pytest.raises(Dygraph2StaticException, match="is changed in a branch"):
        paddle.jit.to_static(in_a_branch)(paddle.ones([2]), three())


def test_a_saved_program_takes_no_iterator(tmp_path):
    step = paddle.jit.to_static(added)
    step(paddle.ones([2]), three())
    with pytest.raises(ValueError, match="with an iterator as argument"):
        paddle.jit.save(step, tmp_path / "m")
