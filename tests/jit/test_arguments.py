"""Python's data of the tensors that a converted function is given: what it reads is that of the
call, what it writes is there after the call.
"""

import pytest

import minipaddle as paddle
from minipaddle import distributed as dist
from minipaddle.jit import to_static

BACKENDS = pytest.mark.parametrize("backend", ["interpreter", "native"])


def named(name, value=1.0, **attributes):
    x = paddle.full([2], value)
    x.name = name
    for key, each in attributes.items():
        setattr(x, key, each)
    return x


def described(x, more):
    y = more["y"]
    found = [x.name, x.persistable, x.is_parameter, getattr(y, "tag", None), hasattr(x, "tag")]
    return found, x + len(y.name)


@BACKENDS
def test_what_is_read_is_that_of_the_call(backend):
    static = to_static(described, backend=backend)
    weight = paddle.nn.Linear(2, 2).bias
    kept = named("kept")
    kept.persistable = True
    for x, y in [
        (named("a"), named("b")),
        (named("a"), named("bc")),
        (named("b", tag=1), named("b", tag=2)),
        (named("b", tag=1), named("b", tag=3)),
        (kept, weight),
        (weight, paddle.ones([2])),
        (named("a"), named("b")),
    ]:
        for _ in range(3):
            (left, a), (right, b) = static(x, {"y": y}), described(x, {"y": y})
            assert left == right
            assert a.tolist() == b.tolist()
    assert len(static.program_cache) == 6


def test_a_call_with_the_same_data_needs_no_further_program():
    static = to_static(described)
    for k in range(5):
        assert static(named("a", k), {"y": named("b")})[0][0] == "a"
    assert len(static.program_cache) == 1
    static.get_concrete_program(named("a"), {"y": named("b")})
    assert len(static.program_cache) == 1
    static(named("b"), {"y": named("b")})
    assert static.explain().endswith("Tensor.name is 'b', was 'a'")


def test_a_function_that_reads_none_has_one_program_for_all():
    static = to_static(lambda x: (x + 1).sum())
    for k in range(4):
        x = named(f"x{k}", k, tag=k)
        assert static(x).item() == 2 * k + 2
    assert len(static.program_cache) == 1
    assert not static.by_argument


def test_tensors_and_objects_that_an_argument_has():
    class Box:
        n = 1

    def masked(x):
        return x * x.mask + x.box.n

    static, box = to_static(masked), Box()
    for value in (2.0, 3.0):
        x = named("x", value, mask=paddle.full([2], value), box=box)
        assert static(x).tolist() == masked(x).tolist()
    assert len(static.program_cache) == 1
    box.n = 5
    assert static(x).tolist() == masked(x).tolist()


def marking(x, y):
    x.tag = 3
    x.name = y.name + "_of"
    y.persistable = True
    y.average = y.mean().item()
    if x.sum() > 2:
        x.count = x.count + 1
    return x.tag, x.name


@BACKENDS
def test_what_is_written_is_there_after_the_call(backend):
    static = to_static(marking, backend=backend)
    for value in (1.0, 2.0, 3.0):
        found = []
        for function in (marking, static):
            x, y = named("x", value, count=1), named("y", value)
            returned = function(x, y)
            found.append((returned, x.tag, x.name, x.count, y.persistable, y.average))
        assert found[0] == found[1]
        assert [*map(type, found[0])] == [*map(type, found[1])]
    assert len(static.program_cache) == 1


def test_what_is_written_is_read_again():
    @to_static
    def count(x):
        x.calls = getattr(x, "calls", 0) + 1
        return x.calls

    x, y = paddle.ones([2]), paddle.ones([2])
    assert [count(x), count(x), count(y), count(x), count(y)] == [1, 2, 1, 3, 2]


def test_an_attribute_that_is_deleted_is_gone():
    def delete(x):
        del x.tag
        return x

    x = named("x", tag=1)
    to_static(delete)(x)
    assert not hasattr(x, "tag")


MESHES = [dist.ProcessMesh([0], dim_names=[name]) for name in ("x", "x", "y")]
"""Two that are equal, and another."""


@pytest.mark.parametrize(
    "values", [MESHES, [dist.Shard(0), dist.Shard(0), dist.Shard(1)]], ids=["mesh", "placement"]
)
@pytest.mark.parametrize("outside", [False, True])
def test_equal_meshes_and_placements_share_a_program(values, outside):
    """Those that are passed, and those that are read."""
    box = {}

    @paddle.jit.to_static
    def double(x, value=None):
        return x * 2 if (value or box["value"]) == values[0] else x

    def call(value):
        box["value"] = value
        return double(paddle.ones([1]), None if outside else value).item()

    assert [call(value) for value in values] == [2, 2, 1]
    assert len(double.program_cache) == 2
