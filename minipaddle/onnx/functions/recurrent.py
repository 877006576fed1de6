"""LSTM, GRU and RNN; many iterations, or a number that only a run knows, are a loop."""

import numpy

from ...core.prelude import Tensor, creation, movement
from ...engine.ops.linalg import matmul
from ...nn.layer.rnn import unroll
from ..table import FUNCTIONS, UnreadableNode, apply, tensor

ACTIVATIONS = {
    "sigmoid": lambda x: apply("sigmoid", x), "tanh": lambda x: apply("tanh", x),
    "relu": lambda x: apply("relu", x),
}  # fmt: skip


def recurrent(gates: int, step):
    """LSTM, GRU and RNN: `step(x, h, c, r, bias, functions, linear)` gives the next (h, c)."""

    def call(x, w, r, bias=None, lengths=None, h0=None, c0=None, peepholes=None, *, hidden_size,
             direction="forward", activations=None, activation_alpha=None, activation_beta=None,
             clip=None, layout=0, input_forget=0, linear_before_reset=0, node):  # fmt: skip
        if clip or layout or input_forget or peepholes is not None:
            raise UnreadableNode("it has options that are not supported")
        x = tensor(x)
        full = isinstance(lengths, numpy.ndarray) and bool((lengths == x.spec.shape[0]).all())
        lengths = None if lengths is None or full else tensor(lengths)
        ways, batch, n = 1 + (direction == "bidirectional"), x.spec.shape[1], hidden_size
        names = [a.lower() for a in activations or DEFAULTS[gates] * ways]
        each, directions = len(names) // ways, []
        for d in range(ways):
            functions = [function_of(a) for a in names[d * each : (d + 1) * each]]
            b = None if bias is None else part(bias, d)
            wx, rt = product_with(w, d)(x), product_with(r, d)
            b_w, b_r = (
                (None, None)
                if b is None
                else tuple(movement.split(b, sizes=(gates * n,) * 2, axis=0))
            )
            wx = wx if b_w is None else wx + b_w
            zero = creation.full(shape=(batch, n), value=0.0, dtype=x.spec.dtype)
            first = tuple(zero if v is None else part(v, d) for v in (h0, c0))

            def advance(now, states, rt=rt, b_r=b_r, functions=functions):
                states = step(now, *states, rt, b_r, functions, linear_before_reset, n)
                return states[0], states

            back = direction == "reverse" or d == 1
            y, states = unroll(advance, wx, first, lengths, reverse=back, time_major=True)
            directions.append((y, *states))
        y, h, c = (movement.stack(*parts, axis=k) for parts, k in zip(zip(*directions), (1, 0, 0)))
        return (y, h, c)[: max(node.results, 1)] if node.results > 1 else y

    return call


DEFAULTS = {4: ["sigmoid", "tanh", "tanh"], 3: ["sigmoid", "tanh"], 1: ["tanh"]}
"""A cell's functions by its number of gates."""


def function_of(name: str):
    if name not in ACTIVATIONS:
        raise UnreadableNode(f"its activation is {name}")
    return ACTIVATIONS[name]


def part(x, d: int) -> Tensor:
    return movement.slice_(tensor(x), index=(d,))


def product_with(w, d: int):
    """The product with the weight of a direction, or with one of its gates."""
    if callable(w):
        return w(d)
    w = movement.transpose(part(w, d), perm=(1, 0))
    n = w.spec.shape[0]

    def times(x, gate=None):
        own = w if gate is None else pieces(w, w.spec.shape[1] // n, n)[gate]
        return matmul(x, own)

    return times


def pieces(x, count: int, n: int) -> tuple:
    return tuple(movement.split(x, sizes=(n,) * count, axis=1))


def add_bias(x, bias):
    return x if bias is None else x + bias


def lstm_step(x, h, c, r, bias, functions, _, n: int):
    f, g, k = functions
    i, o, forget, new = pieces(x + add_bias(r(h), bias), 4, n)
    c = f(forget) * c + f(i) * g(new)
    return f(o) * k(c), c


def gru_step(x, h, c, r, bias, functions, linear, n: int):
    f, g = functions
    xz, xr, xh = pieces(x, 3, n)
    if linear:
        hz, hr, hh = pieces(add_bias(r(h), bias), 3, n)
        z, reset = f(xz + hz), f(xr + hr)
        new = g(xh + reset * hh)
    else:
        bz, br, bh = (None,) * 3 if bias is None else movement.split(bias, sizes=(n,) * 3, axis=0)
        z, reset = f(xz + add_bias(r(h, 0), bz)), f(xr + add_bias(r(h, 1), br))
        new = g(xh + add_bias(r(reset * h, 2), bh))
    return new + z * (h - new), c


def rnn_step(x, h, c, r, bias, functions, _, n: int):
    return functions[0](x + add_bias(r(h), bias)), c


FUNCTIONS |= {
    "LSTM": recurrent(4, lstm_step), "GRU": recurrent(3, gru_step), "RNN": recurrent(1, rnn_step)
}  # fmt: skip
