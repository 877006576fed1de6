"""Python objects that a branch or a loop on a tensor may change without the converter's knowledge:
by libraries, iterators, the user's operators and context managers, NumPy's arrays. The program
does what eager mode does, or the trace is refused, and the object is as it was.
"""

import collections
import contextlib
import copy
import functools
import gc
import heapq
import io
import itertools
import logging
import random
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.jit import aliasing
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.jit.snapshot import ObjectSnapshot


class Counting:
    """What the user's own operators and contexts change."""

    def __init__(self):
        self.count, self.array, self.queue = 0, np.zeros(2), collections.deque()

    def __enter__(self):
        self.count += 1

    def __exit__(self, *exc):
        return False

    def __setitem__(self, key, value):
        self.count += 1

    def __getitem__(self, key):
        self.count += 1
        return key

    def __iadd__(self, other):
        self.count += other
        return self

    def __eq__(self, other):
        self.count += 1
        return True

    __hash__ = None

    @functools.cached_property
    def table(self):
        return [1, 2]


class World:
    """What the changes below are made to."""

    def __init__(self):
        self.queue, self.bytes = collections.deque([1]), bytearray(b"abc")
        self.order = collections.OrderedDict(a=1, b=2)
        self.default = collections.defaultdict(list)
        self.array, self.objects = np.zeros(3), np.array([[], None], object)
        self.counting, self.table, self.heap = Counting(), {"a": 1}, [3, 4]
        self.steps, self.generator = iter([1, 2, 3]), (k for k in range(9))
        self.zip, self.count = zip([1, 2], [3, 4]), itertools.count()
        self.words, self.file = map(str, [1, 2]), io.StringIO()
        self.random, self.generator_of_numpy = random.Random(0), np.random.default_rng(0)
        self.inner = {"rows": [collections.deque()]}

    def held(self):
        """All that can be compared."""
        c = self.counting
        return copy.deepcopy([self.queue, self.bytes, [*self.order], [*self.default.items()],
                self.array.tolist(), self.objects.tolist(), c.count, c.array.tolist(), c.queue,
                [*vars(c)], self.table, self.heap, self.inner,
                random.getstate(), np.random.get_state()[2]])  # fmt: skip


W = World()
TOTAL = 0


@contextlib.contextmanager
def opening():
    W.queue.append(1)
    yield


@paddle.jit.not_to_static
def count_up():
    global TOTAL
    TOTAL += 1


@functools.lru_cache
def cached(n):
    W.table["n"] = n
    return n


def context(manager):
    with manager:
        pass


def stored(items):
    items[0] = 1


def augmented(array):
    array *= 2
    array += 1


def named():
    W.counting += 1


def unpacked():
    _first, *_ = W.steps


CHANGES = {
    "deque": lambda: W.queue.append(2),
    "deque in a list in a dict": lambda: W.inner["rows"][0].append(1),
    "bytearray": lambda: W.bytes.extend(b"d"),
    "array item": lambda: W.array.__setitem__(0, 5.0),
    "array.fill": lambda: W.array.fill(5.0),
    "array by operators": lambda: augmented(W.array),
    "array by an output": lambda: np.add(W.array, 1, out=W.array),
    "array of an attribute": lambda: W.counting.array.put(0, 7),
    "array of objects": lambda: W.objects[0].append(1),
    "next(it)": lambda: next(W.steps),
    "list(it)": lambda: list(W.steps),
    "a, *b = it": unpacked,
    "generator": lambda: next(W.generator),
    "zip": lambda: next(W.zip),
    "map": lambda: next(W.words),
    "count": lambda: next(W.count),
    "file": lambda: W.file.write("x"),
    "random": lambda: random.random(),
    "a random.Random": lambda: W.random.random(),
    "numpy.random": lambda: np.random.rand(),
    "a generator of NumPy": lambda: W.generator_of_numpy.random(),
    "random.shuffle": lambda: random.shuffle(W.heap),
    "context manager": lambda: context(W.counting),
    "contextlib": lambda: context(opening()),
    "own __setitem__": lambda: stored(W.counting),
    "own __getitem__": lambda: W.counting[0],
    "own __iadd__": named,
    "own __eq__": lambda: W.counting == 3,
    "cached_property": lambda: W.counting.table,
    "object.__setattr__": lambda: object.__setattr__(W.counting, "count", 9),
    "not_to_static": count_up,
    "lru_cache": lambda: cached(3),
    "heapq": lambda: heapq.heappush(W.heap, 1),
    "dict.__setitem__": lambda: dict.__setitem__(W.table, "k", 1),
    "OrderedDict.move_to_end": lambda: W.order.move_to_end("a"),
}


@pytest.fixture(autouse=True)
def world():
    W.__init__()
    cached.cache_clear()


def branch(x, change):
    if x.sum() > 100:
        change()
    return x * 2


def loop(x, change):
    n = x.sum()
    while n > 0:
        change()
        n = n - 1
    return n


def plainly(x, change):
    change()
    return x * 2


CONTAINERS = ["heapq", "array of objects", "dict.__setitem__", "OrderedDict.move_to_end"]
DRAWS = ["random", "a random.Random", "numpy.random", "a generator of NumPy", "random.shuffle"]
"""Taken while the function is traced: see test_once.py."""


@pytest.mark.parametrize("change", CONTAINERS)
def test_containers_change_in_each_run(change):
    outcomes = []
    for convert in (lambda f: f, paddle.jit.to_static):
        W.__init__()
        function = convert(lambda x: plainly(x, CHANGES[change]))
        for _ in range(3):
            function(paddle.ones([2]))
        outcomes.append(W.held()[:-2])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("change", sorted(CHANGES.keys() - CONTAINERS - {*DRAWS}))
def test_changes_that_would_be_made_once_are_refused(change):
    before = W.held()
    with pytest.raises(Dygraph2StaticException, match="is changed by"):
        paddle.jit.to_static(lambda x: plainly(x, CHANGES[change]))(paddle.ones([3]))
    assert W.held() == before


@pytest.mark.parametrize("function", [branch, loop])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_that_no_program_makes_are_refused(function, change):
    before, total = W.held(), TOTAL
    static = paddle.jit.to_static(functools.partial(function, change=change))
    with pytest.raises(Dygraph2StaticException, match=f"line .*, in {function.__name__}"):
        static(paddle.ones([3]))
    assert W.held() == before
    assert total == TOTAL or change is count_up


LINES = [
    lambda: logging.getLogger("minipaddle.tests").info("a line"),
    lambda: logging.warning("a line"),
    lambda: warnings.warn("a line", stacklevel=1),
    lambda: print("a line", file=W.file),
]


@pytest.mark.parametrize("function", [branch, loop])
@pytest.mark.parametrize("line", LINES)
def test_lines_for_a_reader_are_refused(caplog, recwarn, function, line):
    with pytest.raises(Dygraph2StaticException, match="while the program is traced"):
        paddle.jit.to_static(functools.partial(function, change=line))(paddle.ones([3]))
    assert not [*caplog.records, *recwarn]
    assert not W.file.getvalue()


def a_layer_called(x):
    if x.sum() > 100:
        NET.calls.append(1)
        object.__setattr__(NET, "scale", 2.0)
    return NET.inner(x)


def test_a_layer_is_as_it_was():
    with pytest.raises(Dygraph2StaticException, match="is changed in"):
        paddle.jit.to_static(a_layer_called)(paddle.ones([1]))
    assert not NET.calls
    assert NET.inner(paddle.ones([1])).item() == 1.0
    vars(NET).pop("scale", None)


def a_name(x):
    if x.sum() > 0:
        W.inner["rows"][0].append(1)
    return x


def test_the_object_is_named():
    with pytest.raises(Dygraph2StaticException, match=r"`W.inner\['rows'\]\[0\]` \(deque\)"):
        paddle.jit.to_static(a_name)(paddle.ones([1]))


def plain_change(x):
    y = x * 2
    W.inner["rows"][0].append(1)
    return y


def test_the_line_that_changes_an_object_is_told():
    with pytest.raises(Dygraph2StaticException) as found:
        paddle.jit.to_static(plain_change)(paddle.ones([1]))
    line = plain_change.__code__.co_firstlineno + 2
    assert f"at: {__file__}:{line}, in plain_change" in str(found.value)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda: random.randint(0, 9), "the generator of `random`"),
        (lambda: np.random.rand(), "the generator of `numpy.random`"),
        (lambda: W.random.random(), "`W.random`"),
    ],
)
def test_chance_of_python_is_told_from_paddles(draw, name):
    with pytest.raises(Dygraph2StaticException, match=rf"{name} (?s:.*)draw with paddle\.rand"):
        paddle.jit.to_static(lambda x: branch(x, draw))(paddle.ones([1]))


# ---- what is as in eager mode --------------------------------------------------------------------


def things_of_the_block(x):
    if x.sum() > 0:
        queue, array, steps = collections.deque([x]), np.zeros(2), iter([2.0, 3.0])
        queue.append(x * 2)
        array[0] = 4
        augmented(array)
        context(Counting())
        x = queue.pop() * next(steps) + float(array[0])
    return x


def attributes_by_name(x):
    W.counting.count = 0
    if x.sum() > 0:
        W.counting.count = 2
    else:
        W.counting.count = 5
    return x * W.counting.count


def items_by_name(x):
    table = {"a": x}
    if x.sum() > 0:
        table.__setitem__("a", x * 2)
    return table["a"]


def missing_keys(x):
    if x.sum() > 0:
        W.default["a"].append(x)
    else:
        W.default["a"].append(x * 3)
    y = W.default["a"].pop()
    del W.default["a"]
    return y


def an_ordered_dict(x):
    order = collections.OrderedDict(a=x, b=x)
    for _ in range(3):
        if x.sum() > 0:
            order.update(a=order["a"] + 1)
        order.move_to_end("a")
    return order["a"]


class Switched(paddle.nn.Layer):
    scale = 1.0

    def __init__(self):
        super().__init__()
        self.inner, self.calls = paddle.nn.ReLU(), collections.deque()


NET = Switched()


@contextlib.contextmanager
def scaled(net, by):
    before, net.scale = net.scale, by
    yield
    net.scale = before


def an_attribute_put_back(x):
    with scaled(NET, 3.0):
        if x.sum() > 0:
            x = NET.inner(x) * NET.scale
    return x * NET.scale


def a_sum_with_its_state_put_back(x):
    if x.sum() > 0:
        with np.errstate(all="ignore"):
            x = x * 2
    return x


AS_EAGER = [things_of_the_block, attributes_by_name, items_by_name, missing_keys,
            an_ordered_dict, an_attribute_put_back, a_sum_with_its_state_put_back]  # fmt: skip


@pytest.mark.parametrize("function", AS_EAGER, ids=lambda f: f.__name__)
def test_same_as_eager(function):
    static = paddle.jit.to_static(function)
    for x in (paddle.ones([2]), -paddle.ones([2])):
        assert static(x).tolist() == function(x).tolist()


def test_what_is_cached_is_each_runs_own():
    made = []

    @functools.lru_cache
    def mask(n):
        return paddle.arange(n).astype("float32")

    def masked(x):
        return x * mask(x.shape[0]) + mask(x.shape[0])

    static = paddle.jit.to_static(masked)
    for n in (2, 3, 2):
        made.append(static(paddle.ones([n])).tolist())
    assert made == [masked(paddle.ones([n])).tolist() for n in (2, 3, 2)]


# ---- loops over iterators that a tensor ends -----------------------------------------------------


def forever():
    k = 0
    while True:
        k += 1
        yield k


ENDLESS = {"count": itertools.count, "iter": lambda: iter(int, 1), "generator": forever,
           "enumerate": lambda: enumerate(forever()),
           "cycle": lambda: itertools.cycle([1, 2])}  # fmt: skip


def until(x, items):
    for _ in items():
        x = x + 1
        if x.sum() > 10:
            break
    return x


def returned(x, items):
    for _ in items():
        x = x + 1
        if x.sum() > 10:
            return x
    return x


def whether_any(x, items):
    return x * 2 if any(x.sum() < len(str(k)) for k in items()) else x


@pytest.mark.parametrize("function", [until, returned, whether_any])
@pytest.mark.parametrize("items", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_iterator_is_refused(monkeypatch, function, items):
    monkeypatch.setattr(aliasing, "UNSIZED", 12)
    with pytest.raises(Dygraph2StaticException, match="did not end in 12 iterations"):
        paddle.jit.to_static(functools.partial(function, items=items))(paddle.ones([3]))


def rows_and_numbers(x):
    for k, (a, b) in enumerate(zip([1, 2, 3, 4], forever())):
        x = x + k * a + b
        if x.sum() > 10:
            break
    return x


def a_generator_of_its_own(x):
    for k in (k * 2 for k in range(20)):
        if x.sum() > 10:
            return x
        x = x + k
    return x


@pytest.mark.parametrize("function", [rows_and_numbers, a_generator_of_its_own])
def test_iterators_that_end(monkeypatch, function):
    monkeypatch.setattr(aliasing, "UNSIZED", 24)
    x = paddle.ones([2])
    assert paddle.jit.to_static(function)(x).tolist() == function(x).tolist()


def an_iterator_used_again(x):
    steps = iter([1, 2, 3])
    for k in steps:
        x = x + k
        if x.sum() > 2:
            break
    return x + next(steps)


def an_iterator_in_another(x):
    for k, step in enumerate(W.steps):
        x = x + k * step
        if x.sum() > 2:
            break
    return x


@pytest.mark.parametrize("function", [an_iterator_used_again, an_iterator_in_another])
def test_an_iterator_that_others_use_is_refused(function):
    with pytest.raises(Dygraph2StaticException, match=r"`(W\.)?steps`.*only when the program runs"):
        paddle.jit.to_static(function)(paddle.ones([3]))


def a_dict_beside_an_iterator(x):
    if x.sum() > 9:
        return x
    kept = {"a": x}
    kept.update(a=[x * 2, x if all([x.sum() > 0.5, True]) else x + 1])
    return kept["a"][0]


def test_a_container_of_one_side_is_its_own():
    x = paddle.ones([3])
    assert paddle.jit.to_static(a_dict_beside_an_iterator)(x).tolist() == [2, 2, 2]


def test_what_locals_gave_stays():
    @paddle.jit.to_static
    def f(x):
        mine = locals()
        if all([x.sum() > 0, True]):
            x = x * 2
        return x, [*mine]

    assert "x" in f(paddle.ones([1]))[1]


def a_dict_that_a_partial_keeps(x):
    if x.sum() > 9:
        return x
    kept = {"a": x}
    kept.update(a=x * 2)
    get = functools.partial(kept.get, "a")
    return get()


def test_a_container_that_each_trace_makes_anew_is_refused():
    with pytest.raises(Dygraph2StaticException, match=r"the dict is written .* in each trace"):
        paddle.jit.to_static(a_dict_that_a_partial_keeps)(paddle.ones([3]))


def an_object_that_a_library_keeps(x):
    log = logging.getLogger("minipaddle.tests")
    if x.sum() > 0:
        log.factor = 2
    else:
        log.factor = 5
    return x * log.factor


def a_variable_of_the_module_by_its_dict(x):
    globals()["TOTAL"] = x
    if x.sum() > 0:
        globals()["TOTAL"] = x * 2
    return TOTAL


def an_object_behind_a_weak_reference(x):
    box = weakref.ref(W.counting)()
    if x.sum() > 0:
        box.scale = x
    else:
        box.scale = x * 3
    return box.scale


HIDDEN = [an_object_that_a_library_keeps, a_variable_of_the_module_by_its_dict,
          an_object_behind_a_weak_reference]  # fmt: skip


@pytest.mark.parametrize("function", HIDDEN, ids=lambda f: f.__name__)
def test_what_is_reached_by_a_detour_outlives_the_branch(monkeypatch, function):
    monkeypatch.setitem(globals(), "TOTAL", 0)
    static = paddle.jit.to_static(function)
    for x in (paddle.ones([2]), -paddle.ones([2])):
        assert static(x).tolist() == function(x).tolist()


class Annotated:
    x: int = 0


@pytest.mark.parametrize("root", [Annotated, vars(Annotated)], ids=["class", "proxy"])
def test_the_own_dict_of_a_class_is_never_written(root):
    """It is reached through `vars`, and from 3.14 on through what evaluates the annotations."""
    [own] = [each for each in gc.get_referents(Annotated) if type(each) is dict]
    assert not ObjectSnapshot([root]).knows(own)


LAYER = paddle.nn.Linear(2, 2)
SGD = paddle.optimizer.SGD(0.1, parameters=LAYER.parameters())
SETTINGS = {
    "layer.eval": LAYER.eval,
    "set_lr": lambda: SGD.set_lr(0.3),
    "set_default_dtype": lambda: paddle.set_default_dtype("float64"),
    "register_hook": lambda: LAYER.register_forward_post_hook(lambda *_: None),
}


@pytest.mark.parametrize("function", [branch, loop])
@pytest.mark.parametrize("change", SETTINGS.values(), ids=SETTINGS)
def test_what_the_library_itself_would_change_once_is_refused(function, change):
    static = paddle.jit.to_static(functools.partial(function, change=change))
    with pytest.raises((Dygraph2StaticException, NotImplementedError, TypeError)):
        static(paddle.ones([3]))
    assert (LAYER.training, SGD.get_lr(), paddle.get_default_dtype()) == (True, 0.1, "float32")
    assert not LAYER._forward_post_hooks


def test_a_rate_that_is_set_in_a_program_is_set_after_each_run():
    def step(x):
        SGD.set_lr(0.2)
        return x

    static = paddle.jit.to_static(step)
    for before in (0.1, 0.3):
        SGD.set_lr(before)
        static(paddle.ones([1]))
        assert SGD.get_lr() == 0.2
    SGD.set_lr(0.1)

    @paddle.jit.to_static
    def wrong(x):
        SGD.set_lr(0.2)
        LAYER(x).sum().backward()
        SGD.step()

    with pytest.raises(NotImplementedError, match=r"after set_lr\(\)"):
        wrong(paddle.ones([1, 2]))


HOLDING = """
import minipaddle as paddle

class Holder:
    pass

holder, total = Holder(), 0
holder.everything = globals()

def f(x):
    globals()["total"] = x
    if x.sum() > 0:
        globals()["total"] = x * 2
    return total

static = paddle.jit.to_static(f)
print(static(paddle.ones([1])).item(), static(-paddle.ones([1])).item(), type(holder) is Holder)
"""


def test_an_object_that_holds_the_variables_of_its_module(tmp_path):
    """The trace did not make it, though nothing that the function names leads to it."""
    (tmp_path / "holding.py").write_text(HOLDING)
    run = [sys.executable, str(tmp_path / "holding.py")]
    out = subprocess.run(run, capture_output=True, text=True)
    assert out.stdout == "2.0 -1.0 True\n", out.stderr
