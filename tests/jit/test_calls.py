"""Calling converted functions: decorators, the cache, input specs, switches."""

import copy
import functools
import threading
import warnings

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.eager.tracer import Tracer
from minipaddle.jit import enable_to_static, ignore_module, not_to_static, to_static
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from minipaddle.static import InputSpec


def ones(*shape):
    return paddle.ones(shape)


def sign(x):
    if x.sum() > 0:
        return x
    return -x


# ---- functions, layers, decorators ---------------------------------------------------------------


def test_to_static_twice_is_once():
    f = to_static(to_static(sign))
    assert f.dygraph_function is sign
    assert f(-ones(2)).tolist() == [1.0, 1.0]


def test_a_layer_is_converted_in_place_and_rolled_back():
    net = nn.Linear(2, 3)
    assert to_static(net) is net
    static = net.forward
    with pytest.warns(UserWarning, match="converted already"):
        to_static(net)
    assert net.forward is not static
    net(ones(1, 2))
    assert len(net.forward.program_cache) == 1
    net.forward.rollback()
    assert not hasattr(net.forward, "program_cache")


class Scaled(nn.Layer):
    def __init__(self):
        super().__init__()
        self.scale = self.create_parameter([2])

    def forward(self, x):
        return x * self.scale if x.sum() > 0 else x - self.scale

    @to_static
    def twice(self, x):
        return x * self.scale * 2


def test_a_copy_of_a_converted_layer_is_its_own():
    net = to_static(Scaled())
    x = ones(2)
    before = net(x).tolist(), net.twice(x).tolist()
    again = copy.deepcopy(net)
    assert (again(x).tolist(), again.twice(x).tolist()) == before
    assert again.forward.class_instance is again
    again.scale.set_value(ones(2) * 5)
    assert again(x).tolist() == [5, 5]
    assert again.twice(x).tolist() == [10, 10]
    assert (net(x).tolist(), net.twice(x).tolist()) == before
    again(x).sum().backward()
    assert again.scale.grad.tolist() == [1, 1]
    assert net.scale.grad is None


def test_copies_of_layers_in_layers_and_of_methods():
    net = nn.Sequential(to_static(Scaled()), nn.LayerList([to_static(nn.Linear(2, 2))]))
    again, method = copy.deepcopy((net, net[0].forward))
    assert again[0].forward is method
    assert method.class_instance is again[0]
    assert again[1][0].forward.class_instance is again[1][0]
    f = to_static(sign)
    assert copy.deepcopy(f)(-ones(2)).tolist() == [1, 1]
    assert copy.deepcopy(f) is not f


def test_a_registering_decorator_runs_once():
    registered = []

    def register(function):
        registered.append(function)
        return function

    @to_static
    @register
    def f(x):
        return x + 1 if x.sum() > 0 else x

    assert f(ones(2)).tolist() == [2.0, 2.0]
    assert len(registered) == 1


def test_wraps_properties_and_static_methods():
    class Net(nn.Layer):
        @staticmethod
        @to_static
        def half(x):
            return x / 2 if x.sum() > 1 else x

        @to_static
        def forward(self, x):
            return self.half(x) + self.own

        @property
        def own(self):
            return 1.0

    net = Net()
    assert net(ones(2)).tolist() == [1.5, 1.5]
    assert Net.half(ones(2)).tolist() == [0.5, 0.5]
    wrapped = to_static(functools.partial(sign))
    assert wrapped(-ones(1)).tolist() == [1.0]


def test_a_method_of_a_plain_class_has_programs_of_its_own():
    class Scaler:
        def __init__(self, k):
            self.k = k

        @to_static
        def __call__(self, x):
            return x * self.k

    assert [Scaler(k)(ones(1)).item() for k in (2, 3)] == [2.0, 3.0]


def test_what_stays_python():
    seen = []

    @not_to_static
    def look(x):
        seen.append(type(x).__name__)
        return x

    @to_static
    def f(x):
        return look(x) * 2

    f(ones(2))
    assert seen == ["Tensor"]
    ignore_module([np])


def test_a_method_that_stays_python():
    class Net(nn.Layer):
        def inner(self, x):
            return x * 2 if x.sum() > 0 else x

        def forward(self, x):
            return self.inner(x)

    net = Net()
    not_to_static(net.inner)
    with pytest.raises(TypeError, match="no value yet"):
        to_static(net)(ones(2))


def test_a_layer_whose_forward_stays_python():
    class Net(nn.Layer):
        @not_to_static
        def forward(self, x):
            seen.append(x.numpy().sum())
            return x * 2

    seen, net = [], to_static(Net())
    assert [net(ones(2) * k).tolist() for k in (1, 2)] == [[2, 2], [4, 4]]
    assert seen == [2, 4]


def test_isinstance_and_arguments_of_numpy():
    @to_static
    def f(x, y):
        return x + y if isinstance(x, paddle.Tensor) else y

    assert f(np.ones(2, "float32"), ones(2)).tolist() == [2.0, 2.0]


def test_results_come_back_as_they_went_in():
    @to_static
    def f(x, options):
        return {"y": (x, [options["k"], None]), "n": options["name"]}

    found = f(ones(1), {"k": 3, "name": "a"})
    assert (found["y"][1], found["n"]) == ([3, None], "a")


def test_enable_to_static():
    calls = []

    @to_static
    def f(x):
        calls.append(1)
        return x

    enable_to_static(False)
    try:
        f(ones(1))
        f(ones(1))
    finally:
        enable_to_static(True)
    assert len(calls) == 2
    assert len(f.program_cache) == 0


# ---- the cache -----------------------------------------------------------------------------------


def test_what_makes_a_program():
    f = to_static(lambda x, n=1: x * n)
    for x, n in ((ones(2), 1), (ones(2), 1), (ones(3), 1), (ones(3), 2), (ones(3) > 0, 2)):
        f(x, n)
    assert len(f.program_cache) == 4
    why = f.explain().splitlines()
    assert why[0] == "1. the first call"
    assert "shape [3], had [2]" in why[1]
    assert "n is 2, was 1" in why[2]
    assert "dtype" in why[3]


def test_modes_have_programs_of_their_own():
    net = to_static(nn.Dropout(0.5))
    net(ones(4))
    net.eval()
    assert net(ones(4)).tolist() == [1.0] * 4
    net.train()
    net(ones(4))
    assert len(net.forward.program_cache) == 2


def test_no_grad_and_default_dtype_have_programs_of_their_own():
    f = to_static(lambda x: x * paddle.full([1], 2.0))
    f(ones(1))
    with paddle.no_grad():
        f(ones(1))
    paddle.set_default_dtype("float64")
    try:
        f(ones(1))
    finally:
        paddle.set_default_dtype("float32")
    assert len(f.program_cache) == 3


def test_a_warning_after_many_programs():
    f = to_static(lambda x: x + 1)
    with pytest.warns(UserWarning, match=r"traced 11 times.*shape \[11\].*input_spec with None"):
        [f(ones(n)) for n in range(1, 12)]


def test_arguments_without_a_hash_stand_for_themselves():
    class Options:
        __hash__ = None

        def __init__(self, k):
            self.k = k

    f = to_static(lambda x, options: x * options.k)
    two = Options(2)
    assert [f(ones(1), o).item() for o in (two, two, Options(3))] == [2.0, 2.0, 3.0]
    assert len(f.program_cache) == 2


def test_threads():
    net = to_static(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    expected = {n: nn.functional.relu(net[0](ones(n, 3))).tolist() for n in range(1, 7)}
    found = {}

    def work(n):
        for _ in range(5):
            found[n] = net(ones(n, 3)).tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_threads_run_one_program_at_the_same_time():
    f = to_static(lambda x: nn.functional.softmax(x @ x).sum())
    x, errors = paddle.rand([300, 300]), []
    expected = f(x).item()

    def work():
        try:
            assert all(f(x).item() == expected for _ in range(20))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_run_waits_for_a_trace_with_its_weights(monkeypatch):
    """While a thread traces for another shape, the weights hold symbolic arrays."""
    layer = nn.Linear(3, 3)
    f = to_static(lambda x: layer(x))
    expected = f(ones(1, 3)).tolist()
    tracing, running, lift = threading.Event(), threading.Event(), Tracer.lift

    def slowly(tracer, x):
        found = lift(tracer, x)
        if x is layer.weight:
            tracing.set()
            running.wait(5)
        return found

    monkeypatch.setattr(Tracer, "lift", slowly)
    thread = threading.Thread(target=lambda: f(ones(2, 3)))
    thread.start()
    assert tracing.wait(30)
    threading.Timer(0.2, running.set).start()
    found = f(ones(1, 3)).tolist()
    assert running.is_set()
    thread.join()
    assert found == expected


# ---- input specs ---------------------------------------------------------------------------------


def test_open_sizes_share_a_program():
    f = to_static(
        lambda x: x.reshape([x.shape[0], -1]).sum(1) / x.shape[1],
        input_spec=[InputSpec([None, None, 2])],
    )
    for n, k in ((2, 3), (4, 5), (1, 1)):
        assert f(ones(n, k, 2)).tolist() == [2.0] * n
    assert len(f.program_cache) == 1


def test_specs_follow_the_nesting_of_arguments():
    spec = {"x": InputSpec([None, 2]), "rest": [InputSpec([None], "int64")]}

    @to_static(input_spec=[spec])
    def f(batch):
        return batch["x"].sum() + batch["rest"][0].sum().astype("float32")

    for n in (2, 3):
        x = {"x": ones(n, 2), "rest": [paddle.arange(n)]}
        assert f(x).item() == 2 * n + n * (n - 1) / 2
    assert len(f.program_cache) == 1


def test_a_call_that_the_spec_does_not_fit_has_its_own_program():
    f = to_static(lambda x: x * 2, input_spec=[InputSpec([None, 2], name="pixels")])
    for n in (3, 5):
        assert f(ones(n, 2)).sum().item() == 4 * n
    for x in (ones(2, 3), ones(2), ones(2, 2).astype("float64")):
        with pytest.warns(UserWarning, match=r"(?s)pixels is .* as input_spec says"):
            y = f(x)
        assert (y.dtype, y.tolist()) == (x.dtype, (x + x).tolist())
    assert len(f.program_cache) == 4


def test_specs_are_values():
    a, b = InputSpec([None, 3]), InputSpec([-1, 3])
    assert (a == b, hash(a) == hash(b)) == (True, True)
    assert a != InputSpec([None, 3], "float64")
    assert InputSpec([3]).batch(None).shape == (-1, 3)
    assert InputSpec([5, 3]).unbatch().shape == (3,)
    assert InputSpec.from_tensor(ones(2, 3)).shape == (2, 3)
    assert InputSpec.from_numpy(np.ones((4,), "float32")).dtype == paddle.float32


def test_loops_over_open_sizes_and_lengths():
    @to_static(input_spec=[InputSpec([None, 2])])
    def f(x):
        total = paddle.zeros([2])
        for k, row in enumerate(x):
            total = total + row * k
        return total, len(x)

    for n in (3, 5):
        total, length = f(ones(n, 2))
        assert total.tolist() == [n * (n - 1) / 2] * 2
        assert int(length) == n
    assert len(f.program_cache) == 1


# ---- looking -------------------------------------------------------------------------------------


def test_what_can_be_looked_at():
    f = to_static(sign)
    with pytest.raises(ValueError, match="has no program yet"):
        f.concrete_program  # noqa: B018
    f(ones(2))
    assert "_jst.if_else" in f.code
    assert "cond(" in str(f.main_program)
    assert f.concrete_program.program is f.main_program


def test_a_program_before_the_first_call():
    spec = [InputSpec([None, 3], name="x"), 3]
    f = to_static(lambda x, n: [x * n, n, x.sum()], input_spec=spec)
    assert [(each.name, list(each.shape)[1:]) for each in f.inputs] == [("x", [3])]
    assert len(f.outputs) == 2
    assert "multiply" in str(f.main_program)
    x = ones(2, 3)
    x.stop_gradient = False
    assert f(x, 3)[0].tolist() == (x * 3).tolist()
    assert len(f.program_cache) == 1  # the call uses the program of the spec
    net = to_static(nn.Linear(3, 2), input_spec=[InputSpec([None, 3], name="rows")])
    assert [each.name for each in net.forward.inputs] == ["rows"]


def test_an_error_before_the_first_call_names_the_line():
    def wrong(x):
        return x + paddle.ones([5])

    with pytest.raises(ValueError, match="in wrong"):
        to_static(wrong, input_spec=[InputSpec([3])]).main_program  # noqa: B018


def test_refusals():
    with pytest.raises(TypeError, match="takes no argument 'fast'"):
        to_static(sign, fast=True)
    with pytest.raises(TypeError, match="a function or a Layer"):
        to_static(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_static(sign, full_graph=True, build_strategy=None, backend=None)


# ---- what a trace says ---------------------------------------------------------------------------


def test_conditions_of_several_elements():
    f = to_static(lambda x: x if x > 0 else -x)
    with pytest.raises(ValueError, match=r"the truth value of bool\[2\] is ambiguous"):
        f(ones(2))


def test_dtypes_that_differ():
    @to_static
    def f(x):
        if x.sum() > 0:
            y = x
        else:
            y = x.astype("int64")
        return y + 1

    for x in ones(2), -ones(2):
        assert (f(x).dtype, f(x).tolist()) == (f.function(x).dtype, f.function(x).tolist())


def test_recursion_without_an_end():
    def down(x):
        return x if x.sum() < 0 else down(x - 1)

    with pytest.raises(RecursionError, match=r"(?s)and so on, \d+ times.*try: a `while` loop"):
        to_static(down)(ones(2))


def test_values_are_not_there_yet():
    for look in (
        lambda x: x.numpy(),
        lambda x: np.sin(x),
        lambda x: f"{x.sum().astype('int64').item()}".strip(),
        lambda x: np.zeros(x.sum().astype("int64").numpy()),
    ):
        with pytest.raises(TypeError, match=r"no value yet|no array yet|np\.sin"):
            to_static(look)(ones(1))


def test_shape_as_a_tensor():
    f = to_static(lambda x: paddle.shape(x) * 2, input_spec=[InputSpec([None, 3])])
    assert f(ones(4, 3)).tolist() == [8, 6]
    assert f(ones(5, 3)).tolist() == [10, 6]


def test_to_tensor_of_tensors():
    @to_static
    def f(x):
        return paddle.to_tensor([x.sum(), 2.0, x.max()]), paddle.to_tensor(x)

    row, same = f(ones(3))
    assert row.tolist() == [3.0, 2.0, 1.0]
    assert same.tolist() == [1.0] * 3


# ---- the key -------------------------------------------------------------------------------------


def test_which_argument_is_the_tensor():
    f = to_static(lambda a, b: a - b)
    x = paddle.to_tensor(5.0)
    assert [f(x, 2.0).item(), f(2.0, x).item(), f(x, 2.0).item()] == [3.0, -3.0, 3.0]
    assert f.explain().endswith("the arguments are ((_, *), {}), were ((*, _), {})")


def test_the_sign_of_zero_and_nan():
    f = to_static(lambda x, s: paddle.atan2(x * s, x - 2))
    x = ones(1)
    assert f(x, 0.0).item() == -f(x, -0.0).item() > 3
    assert all(np.isnan(f(x, np.float32("nan")).item()) for _ in range(3))
    assert all(np.isnan(f(x, s * float("nan")).item()) for s in (1, -1, 1))
    assert len(f.program_cache) == 4


def test_a_class_that_was_defined_anew():
    def made():
        class Pair(tuple):
            __slots__ = ()

        return Pair([ones(1)])

    f = to_static(lambda pair: type(pair) is type(new))
    old, new = made(), made()
    assert [f(old), f(new), f(old)] == [False, True, False]
    assert "of another class of that name" in f.explain()


def test_a_list_written_where_a_tensor_says_and_a_write_in_place():
    """Which of them the new item is, only a run knows: the change would be lost in the other."""

    @to_static
    def f(x, n):
        value = x * 5
        items = [x * 2, x * 3]
        items[n] = value
        items[1].add_(x)
        return value, items

    with pytest.raises(NotImplementedError, match="a view was changed in place"):
        f(ones(2), paddle.to_tensor(1))


def test_an_open_size_of_one_meets_a_weight():
    """The inner sizes of a product must be equal: one is not broadcast there."""
    layer, weight = nn.Linear(1, 2), ones(1, 2)
    for function in (layer, lambda x: x @ weight):
        static = to_static(function, input_spec=[InputSpec([None, None])])
        assert static(ones(3, 1)).tolist() == function(ones(3, 1)).tolist()
        with pytest.raises(ValueError, match="last dimension"):
            static(ones(3, 4))


def test_open_sizes_that_must_agree():
    from minipaddle.nn import functional

    spec = [InputSpec(["a"]), InputSpec(["b"])]
    for function in (paddle.dot, functional.mse_loss, functional.l1_loss):
        static = to_static(lambda x, y, f=function: f(x, y), input_spec=spec)
        assert static(ones(3), ones(3)).tolist() == function(ones(3), ones(3)).tolist()
        assert static(ones(4), ones(4)).tolist() == function(ones(4), ones(4)).tolist()


def last_item(x, n):
    items = [x]
    for _ in range(n):
        items.append(items[-1] * 2)
    return paddle.stack(items)


def length(x, n):
    items = [x]
    for _ in range(n):
        items.append(x * len(items))
    return paddle.stack(items)


def all_items(x, n):
    items = [x]
    for _ in range(n):
        for each in list(items):
            items.append(each * 2)
    return paddle.stack(items)


def whether_any(x, n):
    items = []
    for _ in range(n):
        if items:
            x = x * 2
        items.append(x)
    return paddle.stack(items)


@pytest.mark.parametrize("function", [last_item, length, all_items, whether_any])
def test_a_list_that_grows_is_not_read_in_its_loop(function):
    with pytest.raises(NotImplementedError, match=r"read in that loop(.|\n)*last = f\(last\)"):
        paddle.jit.to_static(function)(paddle.ones([2]), paddle.to_tensor(3))


def spread(x, n):
    items = []
    for _ in range(n):
        items.append(x)
    return (lambda each: each * 2)(*items)


def test_a_list_that_has_grown_is_not_taken_apart_by_python():
    with pytest.raises(NotImplementedError, match=r"cannot take it apart(.|\n)*paddle.stack"):
        paddle.jit.to_static(spread)(paddle.ones([2]), paddle.to_tensor(3))


def test_range_takes_whole_numbers():
    def f(x, n):
        for _ in range(n):
            x = x * 2
        return x

    with pytest.raises(TypeError, match=r"range\(\) of float32\[\](.|\n)*whole numbers"):
        paddle.jit.to_static(f)(paddle.ones([2]), paddle.to_tensor(3.0))


def test_a_function_of_the_users_called_super():
    class Net(nn.Layer):
        def forward(self, x):
            def super():
                return (lambda y: y + 1,)

            return super()[0](x)

    assert to_static(Net())(ones(2)).tolist() == [2.0, 2.0]


def test_sides_that_return_different_numbers_of_values():
    @to_static
    def f(x):
        if x.sum() > 0:
            return x, x + 1
        return x

    with pytest.raises(
        Dygraph2StaticException, match="what the function returns is not the same kind"
    ):
        f(ones(2))


def test_names_of_a_concrete_program():
    f = to_static(lambda x, y: x + y, input_spec=[InputSpec([None, 3]), InputSpec([None, 3])])
    assert f.concrete_program.main_program is f.main_program
    assert [x.shape for x in f.inputs] == [(-1, 3), (-1, 3)]
    assert f.get_traced_count() == 1
    assert ones(1).place._equals(ones(2).place)
