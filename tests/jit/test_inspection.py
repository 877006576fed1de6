"""What a converted function shows of its programs, as Paddle's users ask for it."""

from copy import deepcopy

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import jit
from minipaddle.static import InputSpec


def add(a, b, c=1, d=2):
    return a + b * c


def test_the_program_of_a_call_that_is_not_made():
    f = jit.to_static(add)
    spec = InputSpec([None, 3]), InputSpec([3])
    program, run = f.get_concrete_program(*spec)
    assert f.get_concrete_program(*spec, 1, d=2) == (program, run)
    assert f.get_concrete_program(*spec, c=2) != (program, run)
    assert len(f.program_cache) == 2
    assert len(f.get_concrete_program(np.ones([2, 3], "float32"), spec[1]).program.inputs) == 2
    a, b = paddle.ones([2, 3]), paddle.full([3], 4.0)
    a.stop_gradient = b.stop_gradient = False
    assert run([a, b]).tolist() == [[5.0] * 3] * 2
    with pytest.raises(ValueError, match="nothing is given for 'b'"):
        f.get_concrete_program(spec[0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'e'"):
        f.get_concrete_program(*spec, e=1)


def test_the_programs_of_a_cache_and_the_last_one_that_ran():
    f = jit.to_static(add)
    for n in (2, 3, 2):
        f(paddle.ones([n]), paddle.ones([n]))
    first, second = sorted(f.program_cache.concrete_programs(), key=lambda each: each.number)
    assert f.program_cache.last() is first
    assert f.concrete_program is second


def test_the_inputs_of_a_program_have_the_names_and_sizes_of_the_spec():
    f = jit.to_static(add, input_spec=[InputSpec([None, 3]), InputSpec([-1, 3], name="y")])
    assert [(x.name, x.shape) for x in f.concrete_program.inputs] == [
        ("a", (-1, 3)),
        ("y", (-1, 3)),
    ]
    f = jit.to_static(add)
    f(paddle.ones([2]), paddle.ones([2]))
    assert [(x.name, x.shape) for x in f.concrete_program.inputs] == [("a", (2,)), ("b", (2,))]


def test_in_a_dict_an_input_is_named_by_its_key():
    f = jit.to_static(lambda a, *rest: a[0] + a[1]["x"] + a[1]["y"][0])
    one = paddle.ones([2])
    f([one, {"x": one, "y": [one]}])
    assert [x.name for x in f.inputs] == ["a_0", "x", "y_0"]
    f([one, {"x": one, "y": [one]}], {"x": one, "2": one})
    assert [x.name for x in f.inputs] == ["a_0", "a_1_x", "y_0", "rest_0_x", "rest_0_2"]


def test_a_copy_of_a_converted_function_is_the_function():
    assert deepcopy(jit.to_static(add)) is add
    net = jit.to_static(paddle.nn.Linear(2, 2))
    copied = deepcopy(net)
    assert copied.forward.class_instance is copied
    assert copied.forward is not net.forward


def test_a_function_notes_its_mode():
    f = jit.to_static(add)
    f.eval()
    assert f._training is False
    f.train()
    assert f._training is True


@jit.not_to_static
def doubled_if_many(x):
    if x.shape[0] > 1:
        x = x * 2
    return x


def test_what_is_excluded_shows_its_own_code_and_runs_as_it_is():
    f = jit.to_static(doubled_if_many)
    assert "if x.shape[0] > 1:" in f.code
    assert f(paddle.ones([2])).tolist() == [2.0, 2.0]
    assert not len(f.program_cache)

    class Net(paddle.nn.Layer):
        @jit.to_static
        @jit.not_to_static
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    assert Net()(paddle.full([2], -3.0)).tolist() == [3.0, 3.0]
    net = paddle.nn.Linear(2, 2)
    net.forward = doubled_if_many
    assert "_jst" not in jit.to_static(net).forward.code


def test_a_leaf_that_the_function_makes_wants_a_gradient_as_in_eager_mode():
    def f(x):
        w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        return (x * w).sum(), w, paddle.to_tensor([1], dtype="int64", stop_gradient=False)

    static = jit.to_static(f)
    for x in (paddle.to_tensor([3.0, 4.0]), paddle.to_tensor([5.0, 6.0])):
        for call in (f, static, static):
            y, w, n = call(x)
            assert (w.stop_gradient, w.is_leaf, n.stop_gradient) == (False, True, False)
            y.backward()
            assert w.grad.tolist() == x.tolist()
