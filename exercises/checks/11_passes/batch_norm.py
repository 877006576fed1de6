"""Checks of 11_passes/batch_norm."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.passes.batch_norm import batch_norm

exercise = Exercise(
    title="Folding batch norm into the convolution before it",
    level="hard",
    minutes=50,
    before=("04_training/batch_norm", "11_passes/algebra"),
    slots={"batch_norm.folds": "folds", "batch_norm.rules": "rules"},
    hints=(
        "Output channel o of a convolution is a sum of pixels times w[o]. What is f[o] times that "
        "sum?",
        "f is [1, O, 1, 1] and has to become [O, 1, 1, 1] beside w. In a rule the four numbers of "
        "the convolution are keyword parameters; `after` can take them as **numbers.",
        "before: conv(x, w, stride=stride, padding=…, dilation=…, groups=…) * f\n"
        "after:  conv(x, w * reshape(f, shape=(O, 1, 1, 1)), **numbers)\n"
        "the same with (… + b) * f, and then + b * f; and (… + b) + t with b + t\n"
        "folds: every tensor of rest is [1, O, 1, 1] and of_states(made_by(it))",
    ),
    wrong={
        "the factor along the wrong axis": (
            "(f.spec.size, *[1] * (w.spec.ndim - 1)) → (1, f.spec.size, *[1] * (-1 + "
            "w.spec.ndim - 1))"
        ),
        "the shift is not scaled": "b * f → b",
        "the kernel is not scaled": "_scaled(x, w, f, **numbers) → _plain(x, w, **numbers)",
        "one of two shifts lost": "b + t → b",
        "shifts multiplied": "b + t → b * t",
        "a factor from the image": (
            "value.spec.shape != tuple(channels) or not of_states(made_by(value)) → "
            "value.spec.shape != tuple(channels)"
        ),
        "a number for each pixel": (
            "value.spec.shape != tuple(channels) or not of_states(made_by(value)) → not "
            "of_states(made_by(value))"
        ),
        "only images with two axes": "[1] * w.spec.ndim → [1] * 4",
        "groups forgotten": (
            "conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups) → "
            "conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=1)"
        ),
        "a convolution that others use too": (
            "RewriteRule(_times, _scaled, folds, alone=True) → RewriteRule(_times, _scaled, folds)"
        ),
        "no condition": (
            "RewriteRule(_times, _scaled, folds, alone=True) → "
            "RewriteRule(_times, _scaled, alone=True)"
        ),
        "convolutions without a bias only": (
            "(_plain(x, w, stride, padding, dilation, groups) + b) * f → (_plain(x, w, stride, "
            "padding, dilation, groups) - b) * f"
        ),
        "two shifts left": (
            "_plain(x, w, stride, padding, dilation, groups) + b + t → _plain(x, w, stride, "
            "padding, dilation, groups) - b + t"
        ),
        "only one tensor is asked": (
            "rest.values() → [x for x in rest.values() if isinstance(x, Var)][:1]"
        ),
    },
    unkillable={
        "folds: right only for short lists": "a convolution has three axes at most",
    },
)  # fmt: skip

CONVS = {
    1: (nn.Conv1D, nn.BatchNorm1D),
    2: (nn.Conv2D, nn.BatchNorm2D),
    3: (nn.Conv3D, nn.BatchNorm3D),
}


def network(axes=2, bias=None, seed=0, **how):
    """Two convolutions with batch norms, with weights and statistics that are not 0 and 1."""
    conv, norm = CONVS[axes]
    net = nn.Sequential(conv(4, 4, 3, bias_attr=bias, **how), norm(4), nn.ReLU(),
                        conv(4, 6, 1, bias_attr=bias), norm(6))  # fmt: skip
    rng = np.random.default_rng(seed)
    for w in [*net.parameters(), *net.buffers()]:
        w.set_value((rng.random(w.shape) + 0.5).astype("f4"))
    net.eval()
    return net


def program_of(function, *shapes):
    specs = [Spec(tuple(shape), np.dtype("float32")) for shape in shapes]
    return trace(lambda *xs: [*flat(function(*xs))], specs, names=["x", "y"][: len(specs)]).program


def flat(y):
    return y if isinstance(y, tuple) else (y,)


def values(program, *, seed=1):
    rng = np.random.default_rng(seed)
    given = [rng.standard_normal(r.shape).astype("f4") for r in program.inputs]
    return Run(NUMPY)(program, [*given, *(s.storage.read() for s in program.states)])


def folded(yours, program):
    """What the pass leaves, with the same results."""
    with exercise.plugged(yours):
        after = dead_code(batch_norm(program, frozen=True))
    got, expected = values(after), values(program)
    says = {"program": str(program), "after the pass": str(after)}
    for a, b in zip(got, expected, strict=True):
        expect(a, b, given=says, rtol=1e-4, atol=1e-4)
    return after


def path(program):
    """The operators on the way from the image to the result."""
    known = set(program.inputs)
    found = []
    for record in program.records:
        if known & {*record.inputs}:
            known.add(record)
            found.append(record.op.name)
    return " ".join(found)


@exercise.example
def conv_and_batch_norm(yours):
    """A convolution without a bias: batch norm is a sum; with one, the two sums are one."""
    for bias in (False, None):
        after = folded(yours, program_of(network(bias=bias, padding=1), (2, 4, 6, 5)))
        given = {"bias": bias is None, "after the pass": str(after)}
        expect(path(after), "conv add relu conv add", given=given, why="what is done to the image")


@exercise.property(axes=st.integers(1, 3), bias=st.booleans(), stride=st.integers(1, 2),
                   padding=st.integers(0, 2), dilation=st.integers(1, 2),
                   groups=st.sampled_from((1, 2, 4)), examples=6)  # fmt: skip
def every_convolution(yours, axes, bias, stride, padding, dilation, groups):
    """One to three axes, strides, padding, dilation, groups."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    net = network(axes, None if bias else False, **how)
    after = folded(yours, program_of(net, (2, 4, *(7, 6, 5)[:axes])))
    expect(path(after), "conv add relu conv add", given=how | {"axes": axes, "bias": bias})


@exercise.example
def each_rule_alone(yours):
    """The three trees by themselves, with factors in either order."""
    conv = nn.Conv2D(3, 3, 2, bias_attr=False)
    conv.weight.set_value(np.random.default_rng(0).random((3, 3, 2, 2)).astype("f4"))
    f, b, t = (paddle.to_tensor(np.reshape([1, 2, 3], (1, 3, 1, 1)) * k) for k in (0.5, 2.0, -1.5))
    for text, function, expected in (
        ("conv * f", lambda x: conv(x) * f, "conv"),
        ("f * conv", lambda x: f * conv(x), "conv"),
        ("(conv + b) * f", lambda x: (conv(x) + b) * f, "conv add"),
        ("f * (b + conv)", lambda x: f * (b + conv(x)), "conv add"),
        ("(conv + b) + t", lambda x: (conv(x) + b) + t, "conv add"),
        ("((conv + b) * f + t) * b", lambda x: ((conv(x) + b) * f + t) * b, "conv add"),
        ("conv + b", lambda x: conv(x) + b, "conv add"),
        ("conv * 2", lambda x: conv(x) * 2.0, "conv multiply"),
        ("relu(conv) * f", lambda x: F.relu(conv(x)) * f, "conv relu multiply"),
    ):
        f32 = lambda function: lambda x: function(x).astype("float32")
        program = program_of(f32(function), (2, 3, 5, 5))
        after = folded(yours, program)
        found = path(after).replace(" cast", "")
        expect(found, expected, given={"tree": text, "program": str(program)})


@exercise.example
def what_stays(yours):
    """A convolution that others use; factors from the image, or for each pixel."""
    conv = nn.Conv2D(3, 5, 2)
    conv.weight.set_value(np.random.default_rng(0).random((5, 3, 2, 2)).astype("f4"))
    f = paddle.to_tensor(np.arange(1, 6).reshape(1, 5, 1, 1).astype("f4"))
    wide = paddle.to_tensor(np.arange(1, 5).reshape(1, 1, 1, 4).astype("f4"))
    whole = paddle.ones([1, 5, 4, 4]) * 3.0
    one = paddle.full([1, 1, 1, 1], 3.0)
    bare = nn.Conv2D(3, 5, 2, bias_attr=False)

    def twice(x):
        y = bare(x)
        return y * f, y.exp()

    def from_the_image(x):
        return bare(x) * x.mean(axis=[2, 3], keepdim=True)[:, :1].expand([1, 5, 1, 1])

    def shifted_by_the_image(x):
        return conv(x) + x.mean(axis=[2, 3], keepdim=True)[:, :1].expand([1, 5, 1, 1])

    def scaled_by_the_image(x):
        return conv(x) * (f * x.mean())

    for what, function in {
        "a convolution that two use": twice,
        "a factor from the image": from_the_image,
        "a shift from the image": shifted_by_the_image,
        "a factor of weights and the image": scaled_by_the_image,
        "a number for each column": lambda x: bare(x) * wide,
        "a number for each pixel": lambda x: bare(x) * whole,
        "one number": lambda x: bare(x) * one,
        "(conv + a column) * f": lambda x: (bare(x) + wide) * f,
        "(conv + b) * a column": lambda x: conv(x) * wide,
    }.items():
        program = program_of(function, (1, 3, 5, 5))
        with exercise.plugged(yours):
            after = batch_norm(program, frozen=True)
        expect_that(after.records == program.records, "the program stays as it is",
                    given={"what": what, "program": str(program)}, got=str(after))  # fmt: skip


@exercise.example
def images_are_read_as_before(yours):
    """A small residual network, trained for a moment: the same scores, and no batch norm left."""

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2D(1, 8, 3, padding=1), nn.Conv2D(8, 8, 3, padding=1)
            self.na, self.nb = nn.BatchNorm2D(8), nn.BatchNorm2D(8)
            self.out = nn.Linear(512, 10)

        def forward(self, x):
            x = F.relu(self.na(self.a(x)))
            x = F.relu(self.nb(self.b(x)) + x)
            return self.out(x.flatten(1))

    paddle.seed(0)
    net, x, y = Net(), paddle.randn([16, 1, 8, 8]), paddle.randint(0, 10, [16])
    adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    for _ in range(2):
        F.cross_entropy(net(x), y).backward()
        adam.step()
        adam.clear_grad()
    net.eval()
    program = program_of(net, (8, 1, 8, 8))
    with exercise.plugged(yours):
        after = optimized(program, until="dead_code", frozen=True).program
    names = [r.op.name for r in after.records]
    left = sorted({"sqrt", "rsqrt", "multiply"} & set(names))
    expect_that(not left, "nothing is left of batch norm", given=str(after), got=left)
    got = Run(NUMPY)(after, [x[:8].numpy(), *(s.storage.read() for s in after.states)])
    expect(got[0], net(x[:8]).numpy(), given="eight images", why="the scores", rtol=1e-3, atol=1e-4)
