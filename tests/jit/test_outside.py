"""What a captured function does to the world outside of it, call after call."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.jit.dy2static.utils import Dygraph2StaticException

CONVERSIONS = [lambda f: f, paddle.jit.to_static]


def both(case):
    """Run a case eagerly and converted; both results."""
    return [case(convert) for convert in CONVERSIONS]


def alike(eager, static) -> bool:
    """Equal; floats but for the last bits: C has an `exp` and a `tanh` of its own."""
    if isinstance(eager, list | tuple):
        same = type(eager) is type(static) and len(eager) == len(static)
        return same and all(map(alike, eager, static))
    if type(eager) is float:
        return type(static) is float and static == pytest.approx(eager, rel=3e-7, abs=0)
    return eager == static


def ones(*shape, gradient=False):
    x = paddle.ones(shape)
    x.stop_gradient = not gradient
    return x


def write_argument(convert):
    def f(x):
        x.add_(paddle.ones([2]))
        return x * 2

    x = ones(2)
    found = convert(f)(x)
    return x.tolist(), found.tolist()


def gradient_of_argument(convert):
    def f(x):
        (x * x).sum().backward()
        return x * 1

    f, x = convert(f), ones(2, gradient=True)
    f(x)
    f(x)
    return x.grad.tolist()


def weight_as_argument(convert):
    w = paddle.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
    opt = paddle.optimizer.SGD(0.1, parameters=[w])

    def f(w):
        (w * w).sum().backward()
        opt.step()
        opt.clear_grad()
        return w.sum()

    f = convert(f)
    return [f(w).item() for _ in range(3)], f(ones(2, gradient=True)).item(), w.tolist()


def old_value_of_a_buffer(convert):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", paddle.ones([2]))

        def forward(self, x):
            old = self.count
            y = x * old
            self.count = self.count + 1
            return y, old

    net, found = convert(Net()), []
    for _ in range(2):
        x = ones(2, gradient=True)
        y, old = net(x)
        y.sum().backward()
        found += [x.grad.tolist(), old.tolist()]
    return found


def swapped_buffers(convert):
    a, b = paddle.zeros([2]), paddle.ones([2])

    def f(x):
        kept = a.clone() + 0
        before = b + 0
        a.set_value(before)
        b.set_value(kept)
        return x + a

    f = convert(f)
    return [f(ones(2)).tolist() for _ in range(3)], a.tolist(), b.tolist()


def attribute_before_the_layer_is_called(convert):
    net = nn.Linear(2, 2)
    net.register_buffer("state", paddle.zeros([2]))

    def f(x):
        net.state = net.state + x
        return net.state

    f = convert(f)
    f(ones(2))
    return f(ones(2)).tolist(), net.state.tolist()


def cleared_gradients_are_zeros(convert):
    net = nn.Linear(2, 1)

    def f(x):
        net(x).sum().backward()
        net.clear_gradients()
        return x

    convert(f)(ones(1, 2))
    return net.weight.grad.tolist()


def gradient_assigned(convert):
    net = nn.Linear(2, 1)

    def f(x):
        net(x).sum().backward()
        net.weight.grad = net.weight.grad * 0.5
        return x

    f = convert(f)
    f(ones(1, 2))
    f(ones(1, 2))
    return net.weight.grad.tolist()


def result_of_what_was_walked_back(convert):
    net = nn.Linear(2, 1)
    net.weight.set_value(paddle.ones([2, 1]))

    def f(x):
        loss = net(x).sum()
        loss.backward()
        return loss.exp(), loss.detach()

    return [y.tolist() for y in convert(f)(ones(1, 2))]


@pytest.mark.parametrize(
    "case",
    [write_argument, gradient_of_argument, weight_as_argument, old_value_of_a_buffer,
     swapped_buffers, attribute_before_the_layer_is_called, cleared_gradients_are_zeros,
     gradient_assigned, result_of_what_was_walked_back],
    ids=lambda case: case.__name__,
)  # fmt: skip
def test_same_as_eager(case):
    eager, static = both(case)
    assert alike(eager, static), (eager, static)


def test_clearing_to_none_makes_one_program_for_a_waiting_gradient():
    net = nn.Linear(2, 1)
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x):
        opt.clear_grad(set_to_zero=False)
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    for _ in range(5):
        step(ones(1, 2))
    assert len(step.program_cache) == 2


# ---- objects of Python ---------------------------------------------------------------------------


class Holder:
    total, count, kept = None, 0, None


@dataclass
class Record:
    total: paddle.Tensor


SEEN = {}


def attribute_of_an_object(convert):
    holder = Holder()

    def f(x):
        holder.total = x if holder.total is None else holder.total + x
        return holder.total * 2

    f = convert(f)
    return [f(ones(2)).tolist() for _ in range(3)], holder.total.tolist()


def number_of_an_object(convert):
    holder = Holder()

    def f(x):
        holder.count += 1
        return x * holder.count

    f = convert(f)
    return [f(ones(1)).item() for _ in range(3)], holder.count


def attributes_exchanged(convert):
    holder = Holder()
    holder.total, holder.kept = paddle.zeros([1]), paddle.ones([1])

    def f(x):
        holder.total, holder.kept = holder.kept, holder.total
        return x + holder.total

    f = convert(f)
    return [f(ones(1)).item() for _ in range(3)], holder.total.item(), holder.kept.item()


def attribute_in_a_branch(convert):
    holder = Holder()
    holder.total = paddle.zeros([2])

    def f(x):
        if x.sum() > 0:
            holder.total = holder.total + x
        return x

    f = convert(f)
    f(ones(2))
    f(-ones(2))
    f(ones(2))
    return holder.total.tolist()


def nonlocal_variables(convert):
    total, count = paddle.zeros([]), 0

    def f(x):
        nonlocal total, count
        total = total + x.sum()
        count += 2
        return total

    f = convert(f)
    return [f(ones(2)).item() for _ in range(3)], total.item(), count


def list_outside(convert):
    history = []

    def f(x):
        history.append(x.sum())
        history.append("step")
        return x

    f = convert(f)
    for k in range(4):
        f(ones(2) * k)
    return [x if isinstance(x, str) else x.item() for x in history]


def list_that_is_read(convert):
    history = []

    def f(x):
        last = history[-1] if history else 0.0
        history.append(x.sum() + last)
        if len(history) > 2:
            history.pop(0)
        return x

    f = convert(f)
    for _ in range(5):
        f(ones(2))
    return [x.item() for x in history]


def dict_outside(convert):
    def f(x):
        SEEN["sum"] = x.sum()
        SEEN["pair"] = [x, 3]
        return x

    SEEN.clear()
    f = convert(f)
    f(ones(2))
    f(ones(2) * 2)
    return SEEN["sum"].item(), SEEN["pair"][0].tolist(), SEEN["pair"][1]


def table_made_once(convert):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.tables, self.made = {}, 0

        def forward(self, x):
            n = x.shape[0]
            if n not in self.tables:
                self.tables[n] = paddle.arange(n).astype("float32")
                self.made += 1
            return x * self.tables[n]

    net = convert(Net())
    return [net(ones(n)).tolist() for n in (2, 3, 2, 3, 2)], net.made, sorted(net.tables)


def hidden_state(convert):
    class Net(nn.Layer):
        state = None

        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(2, 2)
            for w in self.cell.parameters():
                w.set_value(paddle.full(w.shape, 0.3))

        def forward(self, x):
            if self.state is None:
                self.state = (paddle.zeros([1, 2]), 0)
            h, n = self.state
            y, h = self.cell(x, h)
            self.state = (h.detach(), n)
            return y

    net = convert(Net())
    return [net(ones(1, 2)).tolist() for _ in range(4)], net.state[0].tolist()


def containers_made_in_a_branch(convert):
    def f(x):
        if x.sum() > 0:
            out, table = [], {}
            out.append(x)
            table["k"] = [x]
            table["k"].append(x * 3)
        else:
            out, table = [x * 2], {"k": [x, x]}
        return out, table

    f, found = convert(f), []
    for x in (ones(1), -ones(1)):
        out, table = f(x)
        found.append(([y.tolist() for y in out], [y.tolist() for y in table["k"]]))
    return found


def containers_made_in_a_loop(convert):
    def f(x):
        k, total = paddle.zeros([], "int64"), x * 0
        while k < 3:
            parts = {"rows": []}
            parts["rows"].append(x)
            parts["rows"].append(x * 2)
            total = total + paddle.stack(parts["rows"]).sum(0)
            k += 1
        return total, parts["rows"][1] if k > 5 else total

    return [y.tolist() for y in convert(f)(ones(2))]


@dataclass
class Pieces:
    rows: list = field(default_factory=list)
    count: int = 0


def objects_let_go(convert):
    def f(x):
        pieces, holder = Pieces(), Holder()
        pieces.rows.append(x)
        pieces.count = 3
        holder.kept = {"rows": pieces.rows}
        holder.kept["rows"].append(x * 2)
        return holder.kept["rows"][1] * len(pieces.rows)

    f = convert(f)
    found = [f(ones(2)).tolist() for _ in range(3)]
    if convert is paddle.jit.to_static:
        assert len(f.program_cache) == 1, f.explain()
    return found


def things_of_its_own(convert):
    def f(x):
        holder, items, table = Holder(), [], {}
        holder.total = x
        items.append(holder.total * 2)
        table["x"] = items[0]
        return table["x"]

    return convert(f)(ones(2)).tolist()


def stored_then_changed(convert):
    table, other = {"old": [ones(1)]}, {}

    def f(x):
        table["new"] = []
        table["new"].append(x)
        other["deep"] = {"list": []}
        other["deep"]["list"].append(x + 1)
        other["deep"]["number"] = len(table["new"])
        table["old"].append(x * 2)
        table["old"] = [*table["old"][-2:]]
        return len(table["old"])

    f, found = convert(f), []
    for k in range(4):
        found += [f(ones(1) * k), [x.item() for x in [*table["new"], *table["old"]]]]
        found += [other["deep"]["list"][0].item(), other["deep"]["number"]]
    return found


def changed_and_returned(convert):
    history, table, record = [], {"last": paddle.zeros([])}, Record(paddle.zeros([]))

    def f(x):
        history.append(x.sum())
        table["last"] = x.sum() * 2
        record.total = x.sum() * 3
        return history, {"inside": table}, record

    f, found = convert(f), []
    for _ in range(3):
        h, t, r = f(ones(2))
        found += [h is history, t["inside"] is table, r is record]
        found += [[x.item() for x in h], t["inside"]["last"].item(), r.total.item()]
    return found


@pytest.mark.parametrize(
    "case",
    [changed_and_returned, stored_then_changed, attributes_exchanged, attribute_of_an_object,
     number_of_an_object, attribute_in_a_branch, nonlocal_variables, list_outside,
     list_that_is_read, dict_outside,
     table_made_once, hidden_state, things_of_its_own, objects_let_go,
     containers_made_in_a_branch, containers_made_in_a_loop],
    ids=lambda case: case.__name__,
)  # fmt: skip
def test_objects_of_python(case):
    eager, static = both(case)
    assert alike(eager, static), (eager, static)


def test_a_number_that_changes_is_told():
    holder = Holder()

    @paddle.jit.to_static
    def f(x):
        holder.count += 1
        return x

    f(ones(1))
    f(ones(1))
    assert (
        f.explain().splitlines()[1]
        == "2. Holder.count is 1, was 0; as a tensor it would be a state"
    )


def test_a_number_that_changes_at_every_call_is_named():
    holder = Holder()

    @paddle.jit.to_static
    def f(x):
        holder.count += 1
        return x

    with pytest.warns(UserWarning, match="`Holder.count` changes at every call: make it a tensor"):
        [f(ones(1)) for _ in range(11)]


def test_an_array_is_read_in_each_run():
    array, mask = np.zeros(9), np.zeros(9, bool)

    @paddle.jit.to_static
    def f(x):
        copied = paddle.to_tensor(array, "float32")
        copied[0] = 7
        return copied + x, paddle.where(paddle.to_tensor(mask), x, -x).sum()

    f(ones(1))
    array[:], mask[:4] = 1, True
    y, difference = f(ones(1))
    assert y.tolist() == [8] + [2] * 8
    assert difference.item() == -1
    assert array.tolist() == [1] * 9
    assert len(f.program_cache) == 1


def test_appending_needs_no_further_program():
    history = [paddle.zeros([])]

    @paddle.jit.to_static
    def f(x):
        history.append(x.sum())
        return x

    for _ in range(5):
        f(ones(1))
    assert len(f.program_cache) == 1
    assert len(history) == 6


def test_a_list_inside_a_dict_that_a_condition_changes_stays_the_same():
    inside = []
    table = {"x": 0, "list": inside, "pair": (inside, 1)}

    @paddle.jit.to_static
    def f(x):
        if x.sum() > 0:
            table["x"] = x
        return table["list"]

    assert f(ones(1)) is inside
    assert table["list"] is inside
    assert table["pair"][0] is inside
    assert table["x"].tolist() == [1.0]


def test_a_tensor_that_changes_is_given_once():
    @paddle.jit.to_static
    def g(a, b):
        a.add_(b)
        return b

    x = ones(1)
    with pytest.raises(Dygraph2StaticException, match="writes to one of its arguments"):
        g(x, x)
    assert g(x, ones(1)).item() == 1.0
    assert x.item() == 2.0
