"""Operators, their rules and kinds; records; interpreters; the errors they give."""

import gc
import inspect
import pickle
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.core import missing
from minipaddle.engine.core import errors, record
from minipaddle.engine.core.dispatch import OUT, Interpreter, current, describe, interpreter
from minipaddle.engine.core.op import NOTHING, OPS, elementwise, movement, opaque, reduction
from minipaddle.engine.core.record import Record, Spec, last_write, mark_written, owner, writes
from minipaddle.engine.eager.execution import Eager
from minipaddle.engine.ops import elementwise as e
from minipaddle.engine.ops import movement as mv

F32, F64, F16, I64 = map(np.dtype, ("float32", "float64", "float16", "int64"))
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _operators_made_here_go_away():
    before = dict(OPS)
    yield
    OPS.clear()
    OPS.update(before)


def leaf(*values, dtype="float32"):
    return paddle.to_tensor(list(values), dtype, stop_gradient=False)


def grads(y, *xs):
    return [None if g is None else g.tolist() for g in paddle.grad(y, list(xs), allow_unused=True)]


# ---- what a body says ------------------------------------------------------------------------


def test_a_body_says_inputs_and_attributes():
    @opaque
    def weigh_(m, x, *rest, axis, scale=2.0):
        """Weighs."""
        return x

    assert (weigh_.name, weigh_.__name__, weigh_.doc) == ("weigh", "weigh", "Weighs.")
    assert (weigh_.inputs, weigh_.variadic) == (["x", "rest"], True)
    assert weigh_.attrs == {"axis": inspect.Parameter.empty, "scale": 2.0}
    assert weigh_.defaults == {"scale": 2.0}
    assert OPS["weigh"] is weigh_
    assert repr(weigh_) == "<opaque operator weigh>"


def test_kinds_and_options():
    @elementwise(result="bool")
    def above(m, x, y):
        return x > y

    @movement
    def turn(m, x):
        return x.T

    @reduction(identity=0, combine="add")
    def total(m, x, *, axis, keepdim):
        return m.sum(x, axis=axis, keepdims=keepdim)

    kinds = [op.kind for op in (above, turn, total)]
    assert kinds == ["elementwise", "movement", "reduction"]
    assert (total.identity, total.combine) == (0, "add")
    assert elementwise.__doc__.startswith("One scalar formula")
    assert above(paddle.to_tensor([1, 3]), 2).tolist() == [False, True]


def test_attributes_given_override_defaults():
    @elementwise
    def times(m, x, *, by=2.0):
        return x * by

    assert times(paddle.to_tensor([1.0])).item() == 2
    assert times(paddle.to_tensor([1.0]), by=5.0).item() == 5


def test_a_movement_has_an_index_map():
    @movement
    def backwards(m, x):
        return x[::-1]

    @backwards.index
    def _(i, x):
        return (x.shape[0] - 1 - i[0],)

    assert backwards.source((0,), Spec((4,), F32)) == (3,)


# ---- rules -----------------------------------------------------------------------------------


def test_four_ways_to_set_a_rule():
    @opaque
    def pair(m, x, y):
        return x + y

    def rule(g):
        return g

    pair.vjp(rule)
    assert set(pair.rules) == {0}
    pair.vjp(y=rule)
    assert set(pair.rules) == {0, 1}
    pair.vjp(x=None, y=None)
    assert pair.rules == {}
    assert pair.vjp("y")(rule) is rule
    assert pair.vjp(rule) is rule
    pair.set_rule(0, pair.rule(1))
    assert pair.rule(0) is pair.rule(1)


def test_a_rule_may_take_all_attributes_that_it_does_not_name():
    """So it hands them on without listing them; an operator's own are left out by naming them."""
    seen = []

    @elementwise
    def line(m, x, *, slope=2.0, shift=1.0, power=1):
        return (x * slope) ** power + shift

    def rule(g, power, **rest):
        seen.append((power, rest))
        return g * rest["slope"]

    line.vjp(rule)
    x = paddle.to_tensor([1.0], stop_gradient=False)
    line(x, slope=3.0).backward()
    assert seen == [(1, {"slope": 3.0, "shift": 1.0})]
    assert x.grad.item() == 3


def test_a_rule_gets_what_it_names():
    seen = {}

    @opaque
    def blend(m, x, y, *, by):
        return x * by + y

    @blend.vjp("x")
    def _(g, out, x, y, x_spec, y_spec, by):
        seen.update(out=out.tolist(), x=x.tolist(), y=y.tolist(), specs=(x_spec, y_spec), by=by)
        return g * by

    x, y = leaf(1.0, 2.0), paddle.to_tensor([10.0, 20.0])
    assert grads(blend(x, y, by=3), x) == [[3.0, 3.0]]
    assert seen == {
        "out": [13.0, 26.0],
        "x": [1.0, 2.0],
        "y": [10.0, 20.0],
        "specs": (Spec((2,), F32), Spec((2,), F32)),
        "by": 3,
    }


def test_a_rule_may_ask_for_the_spec_of_an_input_that_has_a_gradient():
    @opaque
    def first(m, x, y):
        return x

    seen = []
    first.vjp(x=lambda g, y_spec: seen.append(y_spec) or g, y=lambda g, y: None)
    x, y = leaf(1.0), leaf(1.0, 2.0)
    assert grads(first(x, y), x, y) == [[1.0], None]
    assert seen == [Spec((2,), F32)]


def test_a_rule_that_asks_for_what_is_not_there():
    @opaque
    def odd(m, x, *, size):
        return x

    with pytest.raises(TypeError, match=r"odd asks for 'z'; it may ask for out, x, x_spec, size"):
        odd.vjp(lambda g, z: g)


def test_an_attribute_called_out_hides_the_result():
    @opaque
    def through(m, x, *, out):
        return x

    with pytest.raises(TypeError, match="attribute 'out', which a rule cannot ask for"):
        through.vjp(lambda g, out: g)


def test_a_variadic_rule_knows_its_place():
    @opaque
    def join(m, *xs):
        return m.concatenate(xs)

    seen = []

    @join.vjp
    def _(g, out, xs, k, specs, xs_spec):
        seen.append((k, xs.tolist(), [s.shape for s in specs], xs_spec.shape))
        start = sum(s.shape[0] for s in specs[:-1])
        return g[start : start + xs_spec.shape[0]] * xs

    a, b, c = leaf(1.0), paddle.to_tensor([2.0, 3.0]), leaf(4.0, 5.0, 6.0)
    weights = paddle.to_tensor([1.0, 2, 3, 4, 5, 6])
    assert grads(join(a, b, c) * weights, a, c) == [[1.0], [16.0, 25.0, 36.0]]
    assert seen == [(0, [1.0], [(1,)], (1,)), (2, [4.0, 5.0, 6.0], [(1,), (2,), (3,)], (3,))]


KEPT = {
    "nothing for a sum": (e.add, 0b11, NOTHING),
    "the other factor": (e.multiply, 0b01, ((1,), False, ())),
    "both factors": (e.multiply, 0b11, ((0, 1), False, ())),
    "the result": (OPS["exp"], 0b1, ((), True, ())),
    "an edge knows its spec": (mv.reshape, 0b1, NOTHING),
    "specs before it": (mv.concat, 0b100, ((), False, (0, 1))),
    "no derivative": (OPS["floor_divide"], 0b11, ()),
}


@pytest.mark.parametrize(("op", "mask", "kept"), KEPT.values(), ids=KEPT)
def test_only_what_a_rule_names_is_kept(op, mask, kept):
    op.saves.clear()
    assert op.saves[mask] == kept
    assert op.saves[mask] is op.saves[mask]


def test_a_new_rule_changes_what_is_kept():
    @opaque
    def same(m, x):
        return x

    same.vjp(lambda g: g)
    assert same.saves[1] is NOTHING
    same.vjp(lambda g, x: g)
    assert same.saves[1] == ((0,), False, ())
    same.set_rule(0, None)
    assert same.saves[1] == ()


def test_what_a_record_saves_is_known_only_when_it_is_complete(monkeypatch):
    """Ranks that are threads ask at the same time: one that reads an unfinished answer would record
    nothing, and lose a gradient.
    """

    @elementwise
    def early(m, x):
        return x

    early.vjp(lambda g: g)
    seen, rule = [], early.rule
    monkeypatch.setattr(early, "rule", lambda k: seen.append(1 in early.saves) or rule(k))
    assert early.saves[1] is NOTHING
    assert seen == [False]


# ---- results in tuples -----------------------------------------------------------------------


@pytest.fixture
def halves():
    """(2x, x², how many): a differentiable pair, and a whole number that is not."""

    @opaque
    def halves(m, x):
        return x * 2, x * x, m.asarray(x.shape[0])

    @halves.vjp
    def _(g, x):
        return g[0] * 2 + g[1] * 2 * x

    return halves


def test_each_result_of_several_has_its_gradient(halves):
    x = leaf(1.0, 3.0)
    double, square, count = halves(x)
    assert (count.stop_gradient, double.record.op.name) == (True, "item")
    assert grads(double.sum() + (square * 10).sum(), x) == [[22.0, 62.0]]


def test_results_that_are_not_used_count_as_zero(halves):
    x = leaf(1.0, 3.0)
    assert grads(halves(x)[0], x) == [[2.0, 2.0]]
    assert grads(halves(x)[1], x) == [[2.0, 6.0]]


def test_a_result_used_twice_is_summed(halves):
    x = leaf(1.0, 3.0)
    double, _, _ = halves(x)
    assert grads(double * double + double, x) == [[10.0, 26.0]]


def test_tuples_to_second_order(halves):
    x = leaf(1.0, 3.0)
    double, square, _ = halves(x)
    (slope,) = paddle.grad(double * square, x, create_graph=True)
    assert slope.tolist() == [6.0, 54.0]
    assert grads(slope, x) == [[12.0, 36.0]]


def test_a_rule_may_read_one_of_several_results():
    @opaque
    def root(m, x):
        return m.sqrt(x), x

    root.vjp(lambda g, out: g[0] * 0.5 / out[0])
    x = leaf(4.0)
    (slope,) = paddle.grad(root(x)[0], x, create_graph=True)
    assert slope.tolist() == [0.25]
    assert grads(slope, x) == [[-0.03125]]


def test_a_tuple_a_second_time_names_the_operator(halves):
    x = leaf(1.0)
    y = halves(x)[0]
    y.backward()
    with pytest.raises(RuntimeError, match="second time through halves"):
        y.backward()


def test_a_tuple_off_the_tape(halves):
    assert all(part.stop_gradient for part in halves(paddle.ones([2])))


# ---- values ----------------------------------------------------------------------------------


def test_halves_are_computed_in_float32_and_rounded_once():
    seen = []

    @opaque
    def thirds(m, x, y):
        seen.append((x.dtype, y.dtype))
        return x / 3 + y, m.argsort(x)

    thirds.shape(lambda x, y: (x, Spec(x.shape, I64)))
    x = np.array([1.0, 2.0], "float16")
    value, order = thirds.evaluate(np, [x, np.zeros(2, "float32")], {})
    assert seen == [(F32, F32)]
    assert (value.dtype, order.dtype) == (F16, I64)
    wide, _ = thirds.evaluate(np, [np.zeros(2, "float32"), x], {})
    assert wide.dtype == F32, "the shape rule says what it is, not the half beside it"
    np.testing.assert_array_equal(value, (x.astype("float32") / 3).astype("float16"))

    @opaque
    def third(m, x):
        return x / 3

    third.shape(lambda x: x)
    assert third.evaluate(np, [x.astype(BF16)], {}).dtype == BF16
    assert third.evaluate(np, [x.astype("float64")], {}).dtype == F64


def test_inputs_are_promoted_when_the_operator_says_so():
    @opaque(promote=True)
    def both(m, x, y):
        return x + y

    @opaque(promote=("x", "y"))
    def two_of_three(m, x, index, y=None):
        return x.dtype, index.dtype

    @movement(promote=True)
    def side(m, *xs):
        return m.concatenate(xs)

    single, double = np.ones(2, "float32"), np.ones(2)
    assert both.evaluate(np, [single, double], {}).dtype == F64
    index = np.arange(2)
    assert two_of_three.evaluate(np, [single, index, double], {}) == (F64, I64)
    assert two_of_three.evaluate(np, [single, index], {}) == (F32, I64)
    assert side.evaluate(np, [single, double, single], {}).dtype == F64
    assert side.evaluate(np, [single], {}).dtype == F32


def test_a_shape_rule_sees_the_promoted_dtypes():
    @opaque(promote=True)
    def both(m, x, y):
        return x + y

    @both.shape
    def _(x, y):
        return Spec(x.shape, x.dtype if x.dtype == y.dtype else None)

    assert both.result_spec([Spec((2,), F32), Spec((2,), F64)], {}) == Spec((2,), F64)
    assert e.add.result_spec([Spec((2,), F32), Spec((2, 1), F64)], {}) == Spec((2, 2), F64)


def test_results_of_elementwise_operators():
    @elementwise(result="float")
    def ratio(m, x, y):
        return x / y

    @elementwise(result=lambda dtype, attrs: attrs["dtype"])
    def turned(m, x, *, dtype):
        return x

    @elementwise(free=("condition",))
    def kept(m, condition, x):
        return m.where(condition, x, 0)

    whole = np.array([1, 2])
    assert ratio.evaluate(np, [whole, 2], {}).dtype == F32
    assert ratio.infer(Spec((2,), I64), 2) == Spec((2,), F32)
    assert ratio.evaluate(np, [whole.astype("float16"), 2], {}).dtype == F16
    assert not turned.direct
    assert turned.evaluate(np, [whole], {"dtype": F64}).dtype == F64
    assert turned.infer(Spec((2,), I64), dtype=F16) == Spec((2,), F16)
    condition = np.array([[True], [False]])
    assert kept.evaluate(np, [condition, whole], {}).tolist() == [[1, 2], [0, 0]]
    assert kept.infer(Spec((2, 1), np.dtype(bool)), Spec((2,), I64)) == Spec((2, 2), I64)


def test_results_of_reductions():
    @reduction(identity=0, combine="add", result=lambda dtype: I64)
    def count(m, x, *, axis, keepdim):
        return m.sum(x, axis=axis, keepdims=keepdim, dtype="int32")

    @reduction(identity=0, combine="add", result=lambda dtype: I64)
    def count64(m, x, *, axis, keepdim):
        return m.sum(x, axis=axis, keepdims=keepdim)

    attrs = {"axis": (0,), "keepdim": True}
    for op in (count, count64):
        assert op.evaluate(np, [np.ones((2, 3), "int64")], attrs).dtype == I64
    assert count.infer(Spec((2, 3), F32), **attrs) == Spec((1, 3), I64)
    assert count.infer(Spec((2, 3), F32), axis=(0,), keepdim=False) == Spec((3,), I64)
    assert OPS["max"].infer(Spec((2, 3), F32), axis=(1,), keepdim=False) == Spec((2,), F32)
    largest = OPS["max"].evaluate(
        np, [np.array([1, 3], "float16")], {"axis": (0,), "keepdim": False}
    )
    assert (largest, largest.dtype) == (3, F16)


# ---- gradients through kinds -----------------------------------------------------------------


def test_a_cotangent_takes_the_shape_and_dtype_of_its_input():
    x, y = leaf(1.0, 2.0), leaf(3.0, dtype="float64")
    z = x * y
    z.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (paddle.float32, [3.0, 3.0])
    assert (y.grad.dtype, y.grad.tolist()) == (paddle.float64, [3.0])


def test_an_input_without_a_rule_gets_nothing():
    @elementwise
    def onto(m, x, y):
        return x + y

    onto.vjp(x=lambda g: g)
    x, y = leaf(1.0), leaf(2.0)
    assert grads(onto(x, y), x, y) == [[1.0], None]
    assert onto(paddle.ones([1]), y).stop_gradient


# ---- errors ----------------------------------------------------------------------------------


def test_an_error_names_the_operator_and_what_it_was_given():
    @opaque
    def strict(m, x, y, *, axis=0):
        raise RuntimeError("numpy's own words")

    x = paddle.ones([2, 3])
    with pytest.raises(ValueError, match=r"strict\(float32\[2, 3\], 2.5, axis=1\): numpy's own"):
        strict(x, 2.5, axis=1)
    strict.shape(lambda x, y, axis: Spec((), F32))
    with pytest.raises(ValueError, match="numpy's own words"):
        strict(x, 2.5)

    @strict.shape
    def _(x, y, axis):
        raise IndexError("what the shape rule says")

    with pytest.raises(IndexError, match="what the shape rule says"):
        strict(x, 2.5)


def test_type_errors_stay_type_errors():
    @opaque
    def picky(m, x):
        raise TypeError("no")

    with pytest.raises(TypeError, match=r"picky\(int64\[1\]\): no"):
        picky(paddle.to_tensor([1]))


def test_an_operator_without_a_shape_rule():
    @opaque
    def shapeless(m, x):
        return x

    with pytest.raises(NotImplementedError, match="shapeless has no shape rule"):
        shapeless.infer(Spec((), F32))


@pytest.fixture
def lines():
    """Records note the user's line."""
    Eager.lines = True
    yield
    Eager.lines = False


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


@pytest.mark.usefixtures("lines")
def test_with_lines_an_error_shows_the_users_line(halves):
    x = leaf(1.0, 2.0)
    y, line = x * x, here()
    z, _, _ = halves(y)
    assert errors.line_of(y.record.where) == (
        f"{__file__}:{line}, in test_with_lines_an_error_shows_the_users_line"
    )
    assert errors.line_of(z.record.where).startswith(f"{__file__}:{line + 1}")
    x.set_value([5.0, 6.0])
    with pytest.raises(RuntimeError, match=rf"(?s)overwritten.*test_op.py:{line}, in test_with"):
        y.sum().backward()


@pytest.mark.usefixtures("lines")
def test_the_line_of_a_second_backward():
    x = leaf(1.0)
    y, line = x * 2, here()
    y.backward()
    with pytest.raises(
        RuntimeError, match=rf"(?s)multiply.*at: .*test_op.py:{line}, .*retain_graph"
    ):
        y.backward()
    assert f"test_op.py:{line}" in errors.line_of(y.record.where)


def test_a_line_that_no_instruction_has():
    code = here.__code__
    assert errors.line_of((code, 10**6)) == f"{__file__}:0, in here"


def test_describe_and_teach():
    assert describe(paddle.ones([2, 3], "int64")) == "int64[2, 3]"
    assert describe(2.5) == "2.5"
    assert errors.teach("what").startswith(f"what\n  at: {__file__}:")
    where = (here.__code__, 0)
    message = errors.teach("what", expected="this", hint="that", where=where).split("\n")
    assert [line.split(":")[0].strip() for line in message] == ["what", "expected", "at", "try"]


def test_whose_frame_is_it():
    assert errors.user_frame().f_code.co_name == "test_whose_frame_is_it"
    assert errors.find_caller() == ""
    x = paddle.ones([2])
    with pytest.raises(ValueError, match=r"^sum: axis 5"):
        x.sum(5)
    with pytest.raises(ValueError, match=r"^softmax: axis 5"):
        paddle.nn.functional.softmax(x, 5)
    with pytest.raises(ValueError, match=r"^sum: axis \[0, 0\] names a dimension twice"):
        x.sum([0, 0])


MISSING = {
    "nearest": ("zero", "MiniPaddle has no paddle.zero; the nearest name is paddle.zeros"),
    "case": ("ZEROS", "the nearest name is paddle.zeros"),
    "data": ("vision.datasets.Cifar10", "and a paddle.io.Dataset of yours can read files"),
    "nothing near": ("qqqq", "MiniPaddle has no paddle.qqqq"),
    "private": ("_secret", "paddle has no attribute '_secret'"),
    "later": (
        "distributed.rpc",
        "paddle.distributed.rpc: comes with a later part of MiniPaddle: parameter servers and "
        "elastic training",
    ),
    "complex": ("as_complex", "complex numbers are not supported by MiniPaddle"),
}


@pytest.mark.parametrize(("name", "message"), MISSING.values(), ids=MISSING)
def test_a_missing_name(name, message):
    look_up = missing.namespace("paddle", {"zeros": 1, "ones": 2, "_zero": 3})
    with pytest.raises(AttributeError) as error:
        look_up(name)
    assert str(error.value).endswith(message)
    assert repr(error.value) == f"AttributeError({str(error.value)!r})"
    assert pickle.loads(pickle.dumps(error.value)).args == (str(error.value),)


def test_asking_whether_a_name_exists_searches_for_no_other(monkeypatch):
    """`hasattr` and a default throw the error away: what it would say is not worked out."""
    x = leaf(1.0, 2.0)
    x.sum().backward()

    def search(*_):
        raise AssertionError("the nearest name was searched for")

    monkeypatch.setattr(missing.difflib, "get_close_matches", search)
    x.sum().backward()  # onto the gradient that is there
    assert x.grad.tolist() == [2.0, 2.0]
    assert getattr(x, "reshapee", 3) == 3
    assert not hasattr(paddle, "zero")


# ---- records ---------------------------------------------------------------------------------


def test_a_spec():
    spec = Spec((2, 0, 3), F32)
    assert (spec.ndim, spec.size, spec.nbytes) == (3, 0, 0)
    assert (Spec((), F64).size, Spec((2, 3), F64).nbytes) == (1, 48)
    assert str(Spec((2, 3), BF16)) == "bfloat16[2, 3]"
    assert spec.astype(F64) == Spec((2, 0, 3), F64)


def test_a_record():
    y = leaf(1.0, 2.0) * 3.0
    first, second = Record(e.add, [], {}, (2,), F32), Record(e.add, [], {}, (2,), F32)
    assert repr(y.record) == "multiply : float32[2]"
    assert y.record.spec == y.spec
    assert y.record.time < first.time < second.time


def test_the_owner_of_memory():
    root = np.zeros((2, 3), "float32")
    assert owner(root) is root
    assert owner(root[0].reshape(3, 1)[1:].T) is root
    shared = np.frombuffer(bytearray(8), "float32")  # its base is no array
    assert owner(shared) is shared


def test_writes_count_for_every_view():
    root = np.zeros((2, 3), "float32")
    view, other = root[0], np.zeros(3)
    assert (last_write(view), writes(id(root))) == (0, (0, 0))
    mark_written(view[1:])
    first = last_write(root)
    mark_written(root)
    assert first < last_write(view) == last_write(root.T)
    assert (writes(id(root)), writes(id(other))) == ((last_write(root), 2), (0, 0))


def test_nothing_is_remembered_of_memory_that_is_gone():
    array = np.zeros(3)
    key = id(array)
    mark_written(array)
    assert key in record._written
    del array
    gc.collect()
    assert key not in record._written


def test_a_tape_is_freed_with_its_last_tensor():
    y = leaf(1.0) * 2
    seen = weakref.ref(y.record)
    del y
    assert seen() is None


# ---- interpreters ----------------------------------------------------------------------------


def test_an_interpreter_must_say_what_it_does():
    bare = Interpreter()
    for ask in (
        lambda: bare.apply(e.add, (), {}),
        lambda: bare.read(None, OUT),
        lambda: bare.full(Spec((), F32), 0, None),
        lambda: bare.constant([1.0]),
    ):
        with pytest.raises(NotImplementedError):
            ask()


class Listing(Interpreter):
    """Computes nothing: notes which operators were asked for."""

    def __init__(self):
        self.seen = []

    def apply(self, op, inputs, attrs):
        self.seen.append(op.name)
        return inputs[0]


def test_the_interpreter_on_top_decides():
    x = paddle.ones([2])
    with interpreter(Listing()) as listing:
        assert current.top is listing
        assert paddle.exp(x * 2 + x) is x
    assert listing.seen == ["multiply", "add", "exp"]
    assert isinstance(current.top, Eager)
    assert paddle.exp(x * 0).tolist() == [1.0, 1.0]


def test_an_error_takes_the_interpreter_off_again():
    before = current.top
    with pytest.raises(ZeroDivisionError), interpreter(Listing()):
        raise ZeroDivisionError
    assert current.top is before


def test_every_thread_has_its_own_stack():
    seen = {}

    def work():
        seen["top"] = current.top
        with paddle.no_grad():
            seen["worker"] = current.top.recording
            inside.set()
            done.wait(10)

    inside, done = threading.Event(), threading.Event()
    worker = threading.Thread(target=work)
    with interpreter(Listing()) as listing:
        worker.start()
        assert inside.wait(10)
        seen["main"] = current.top.recording
        done.set()
        worker.join()
    assert isinstance(seen["top"], Eager)
    assert seen["top"] is not listing
    assert (seen["main"], seen["worker"]) == (True, False)


def test_the_passing_record_is_put_back_after_an_error():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    assert current.top.passing is None


def test_memory_of_another_library_is_tracked():
    """The base of such an array is no array: that of PyTorch has a dtype, but no base."""

    class Foreign:
        dtype = F32
        memory = np.arange(6.0, dtype="float32").reshape(2, 3)
        __array_interface__ = memory.__array_interface__

    array = np.asarray(Foreign())
    assert type(array.base) is Foreign
    assert last_write(array) == 0
    mark_written(array[0])
    assert last_write(array[:, 1]) > 0
