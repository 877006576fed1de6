"""Lists, dicts and objects that a function is given, and changes: the caller's own change."""

from dataclasses import dataclass

import numpy
import pytest

import minipaddle as paddle
from minipaddle.jit.dy2static.utils import Dygraph2StaticException


@dataclass
class Box:
    value: object
    items: list


def number(n):
    x = paddle.to_tensor([float(n)])
    x.stop_gradient = False
    return x


def plain(value):
    """A value with lists in place of tensors."""
    if isinstance(value, list | tuple):
        return [*map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, Box):
        return plain(vars(value))
    return value.tolist() if isinstance(value, paddle.Tensor | numpy.ndarray) else value


def inside(value) -> list:
    """What a list, a dict or an object holds."""
    if isinstance(value, Box):
        value = vars(value)
    return [*value.values()] if isinstance(value, dict) else [*value]


def append(found, x):
    found.append(x * 2)
    return x + 1


def insert(found, x):
    found.insert(0, x * 2)
    found.extend([x, 3])
    return found[0]


def reverse(found, x):
    found.reverse()
    return found


def clear(found, x):
    found.clear()
    return len(found)


def delete(found, x):
    del found[0]
    found += [x]
    return found[-1]


def pop(found, x):
    return found.pop() + x


def sort(found, x):
    found.sort(key=lambda each: -len(found) if each is x else 0)
    found[:1] = [x, x]


def unchanged(found, x):
    return found, [found]


def by_a_library(found, x):
    list.append(found, x)
    return [*map(found.append, [x + 1])]


def under_a_condition(found, x):
    """Its items are chosen when it runs: they are tensors of their own."""
    if x.sum() > 1:
        found.append(x)
    else:
        found.append(x * 5)
    return found[-1]


LISTS = [append, insert, reverse, clear, delete, pop, sort, unchanged, by_a_library]
LISTS += [under_a_condition]


def store(options, x):
    options["a"] = x * 2
    options["n"] = options.get("n", 0) + 1
    return options


def pop_item(options, x):
    return options.pop("b") + x


def update(options, x):
    options.update(b=x, c=[x])
    del options["b"]
    options.setdefault("d", {})["e"] = x


def in_a_list_inside(options, x):
    options["list"].append(x)
    return options["list"]


DICTS = [store, pop_item, update, in_a_list_inside]


def set_attribute(box, x):
    box.value = box.value + x
    box.items.append(x)
    return box


def add_to_both(box, x):
    box.items, box.value = [box.value], box.items
    return box.value


BOXES = [set_attribute, add_to_both]
CASES = [(f, lambda n: [number(n), number(n + 1)]) for f in LISTS]
CASES += [(f, lambda n: {"b": number(n), "list": [number(n)]}) for f in DICTS]
CASES += [(f, lambda n: Box(number(n), [number(n)])) for f in BOXES]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize(("function", "create"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_the_callers_container_changes(function, create, backend):
    def run(f) -> list:
        found = []
        for n in range(3):
            given, x = create(n), number(9 + n)
            known = [given, x, *inside(given)]
            y = f(given, x)
            same = [[k for k, each in enumerate(known) if each is z] for z in [y, *inside(given)]]
            found.append([plain(y), plain(given), function is under_a_condition or same])
        return found

    converted = paddle.jit.to_static(function, backend=backend)
    assert run(converted) == run(function)
    assert len(converted.program_cache) == 1


def test_a_list_given_again_has_grown():
    f, found = paddle.jit.to_static(append), []
    for n in range(3):
        f(found, number(n))
    assert plain(found) == [[0.0], [2.0], [4.0]]


def test_a_gradient_flows_into_what_was_stored():
    f = paddle.jit.to_static(append)
    for _ in range(3):
        found, x = [], number(3)
        f(found, x)
        found[0].backward()
        assert x.grad.tolist() == [2.0]


def test_keywords():
    @paddle.jit.to_static
    def f(x, *, log, **more):
        log.append(x)
        more["x"] = x  # a dict of the call's own
        return more["y"]

    given, y = [], [number(2)]
    assert f(number(1), log=given, y=y) is y
    assert plain(given) == [[1.0]]


def test_outside_and_given():
    """A list that is given is kept outside: it is the same one."""
    kept, settings = [], [1]

    @paddle.jit.to_static
    def f(found, x):
        kept.append(found)
        kept.append(settings)
        found.append(x)
        return x

    for n in range(2):
        given = []
        f(given, number(n))
        assert kept[-2] is given
        assert kept[-1] is settings
        assert plain(given) == [[float(n)]]


def test_two_ways_to_one_list_are_refused():
    log = []

    @paddle.jit.to_static
    def f(found, other, x):
        found.append(x)
        return x * len(other), len(log)

    match = "f changes a list that it was given, and"
    for given in ([log, []], [found := [], found]):
        f([], [], number(1))
        before = [*given[0]]
        with pytest.raises(Dygraph2StaticException, match=match):
            f(*given, number(1))
        assert given[0] == before
    f(*[[], log], number(1))  # it only reads this one


def test_what_is_outside_and_changes_is_no_argument():
    log = []

    @paddle.jit.to_static
    def f(found, x):
        log.append(x)
        return x * len(found)

    assert f([], number(1)).tolist() == [0.0]
    with pytest.raises(Dygraph2StaticException, match="f changes a list that it was given"):
        f(log, number(1))


def test_a_saved_program_changes_no_argument(tmp_path):
    @paddle.jit.to_static
    def f(x, found):
        found.append(x)
        return x

    spec = paddle.static.InputSpec([2])
    with pytest.raises(Dygraph2StaticException, match="changes a list that it was given"):
        paddle.jit.save(f, str(tmp_path / "f"), input_spec=[spec, [spec]])


def test_a_tensor_of_an_argument_that_an_attribute_had_before():
    """The third program takes the tensor from `own.h`; in the next call it is elsewhere."""

    class Pair:
        def __init__(self):
            self.h, self.other = number(0), number(5)

    def swap(own, items, x):
        own.h, own.other = own.other, own.h
        return x * 2, items[-1]

    def calls(function):
        own, items, found = Pair(), [number(1)], []
        for k in range(5):
            if k == 2:
                own.h = items[0]
            returned = function(own, items, number(k))
            found += [plain(returned), returned[1] is items[0], plain([own.h, own.other])]
        return found

    assert calls(paddle.jit.to_static(swap)) == calls(swap)


def reorder(found, x):
    found.append(found.pop(0))
    found[0] = x


def write_an_element(found, x):
    found[0][0] = 7.0
    found.append(x)


def repeat(found, x):
    found += [found[1], x]
    return found[0] + x


@pytest.mark.parametrize("function", [append, insert, reverse, delete, reorder, repeat])
def test_arrays_in_a_list_stay_the_callers_arrays(function):
    changed = []
    for call in (function, paddle.jit.to_static(function)):
        for n in (1, 2):
            arrays = [numpy.array([n, 2.0], "float32"), numpy.array([3, 4])]
            found = [*arrays]
            call(found, number(n))
            same = [next((k for k, a in enumerate(arrays) if a is x), None) for x in found]
            changed.append((plain(found), same, [a.tolist() for a in arrays]))
    assert changed[:2] == changed[2:]


def test_arrays_in_a_dict_stay_the_callers_arrays():
    static, array = paddle.jit.to_static(update), numpy.ones(2)
    options = {"a": array, "b": array}
    static(options, number(1))
    assert options["a"] is array
    assert plain(options) == {"a": [1, 1], "c": [[1]], "d": {"e": [1]}}


def test_a_write_to_an_element_reaches_the_callers_array():
    for call in (write_an_element, paddle.jit.to_static(write_an_element)):
        array = numpy.ones(2, "float32")
        found = [array]
        call(found, number(1))
        assert found[0] is array
        assert array.tolist() == [7, 1]


def test_a_write_to_an_array_given_twice_is_refused():
    with pytest.raises(
        Dygraph2StaticException, match="writes to one of its arguments, given twice"
    ):
        paddle.jit.to_static(write_an_element)([array := numpy.ones(2), array], number(1))
