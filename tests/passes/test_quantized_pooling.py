"""Max-pooling of whole numbers: the same bits, from a quarter of the memory."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.ops.quantization import quantize
from minipaddle.passes.quantized_pooling import quantized_pooling
from tests.benchmarks.compression_stages import in_eight_bits, network
from tests.passes.programs import program_of, results


def quantized(*layers):
    """A program on whole numbers for images [2, 1, 12, 12], and its arrays."""
    paddle.seed(1)
    net, x = nn.Sequential(*layers).eval(), paddle.randn([2, 1, 12, 12])
    net[0].bias.set_value(paddle.randn(net[0].bias.shape))
    small = in_eight_bits(net, x)
    program = program_of(lambda x: small(x), (2, 1, 12, 12))
    return program, [x.numpy(), *(s.storage.read() for s in program.states)]


def conv(before, after):
    return nn.Conv2D(before, after, 3, padding=1)


NETS = {
    "relu, then pooling": lambda: (conv(1, 5), nn.ReLU(), nn.MaxPool2D(2), conv(5, 3)),
    "pooling, then relu": lambda: (conv(1, 5), nn.MaxPool2D(2), nn.ReLU(), conv(5, 3)),
    "windows that overlap": lambda: (conv(1, 5), nn.ReLU(), nn.MaxPool2D(3, 2), conv(5, 3)),
    "two poolings": lambda: (conv(1, 5), nn.MaxPool2D(2), nn.MaxPool2D((1, 3)), conv(5, 3)),
    "before a linear layer": lambda: (
        conv(1, 5), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(180, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_the_bits_are_those_of_pooled_floats(name):
    program, arrays = quantized(*NETS[name]())
    after = dead_code(quantized_pooling(program))
    assert "max_pool" in str(program)
    assert "max_pool" not in str(after)
    (wanted,), (found,) = results(program, arrays), results(after, arrays)
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(wanted)) > 2


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_as_c_it_takes_a_quarter_of_the_memory():
    program, arrays = quantized(*NETS["before a linear layer"]())
    sizes = []
    for pool_bytes in (False, True):
        done = optimized(program, frozen=True, pool_bytes=pool_bytes).program
        made = Executable(done)
        given = [arrays[0], *(s.storage.read() for s in done.states)]
        (found,) = made(done, given)
        np.testing.assert_array_equal(found, results(program, arrays)[0])
        # without the workspaces of products
        sizes.append(sum(a.buffer.nbytes for a in made.plan.allocations if a.values))
    assert sizes[1] < 0.4 * sizes[0], sizes


@pytest.mark.parametrize(
    "layers",
    [
        lambda: (conv(1, 5), nn.MaxPool2D(3, 2, padding=1), conv(5, 3)),
        lambda: (conv(1, 5), nn.AvgPool2D(2), conv(5, 3)),
        lambda: (conv(1, 5), nn.Sigmoid(), nn.MaxPool2D(2), conv(5, 3)),
    ],
    ids=["beyond the image", "a mean", "another function"],
)
def test_what_is_not_sure_stays(layers):
    program, _ = quantized(*layers())
    assert str(quantized_pooling(program)) == str(program)


def test_a_sum_with_what_may_be_nan_stays():
    """NaN is rounded to the lowest number: the maximum would lose it."""
    net = in_eight_bits(nn.Sequential(conv(1, 1)).eval(), paddle.randn([2, 1, 12, 12]))

    def function(x):
        y = nn.functional.max_pool2d(net(x) + x, 2)
        return quantize(y, 2.0, 0.0, low=-128, high=127)

    program = program_of(function, (2, 1, 12, 12))
    assert str(quantized_pooling(program)) == str(program)


def test_floats_that_are_read_twice_stay():
    """The first pooling of a residual network feeds a convolution and a sum."""
    small = in_eight_bits(network(4).eval(), paddle.randn([2, 1, 16, 16]))
    program = program_of(lambda x: small(x), (2, 1, 16, 16))
    assert str(quantized_pooling(program)) == str(program)
