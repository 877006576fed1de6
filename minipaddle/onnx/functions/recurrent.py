"""LSTM, GRU and RNN, their iterations written one after the other."""

import numpy

from ...core.prelude import Dim, Tensor, creation, movement
from ...engine.ops.linalg import matmul
from ..table import FUNCTIONS, UnreadableNode, apply, tensor

ACTIVATIONS = {
    "sigmoid": lambda x: apply("sigmoid", x), "tanh": lambda x: apply("tanh", x),
    "relu": lambda x: apply("relu", x),
}  # fmt: skip
MOST_STEPS = 512
"""Iterations of a recurrence that are written one after the other."""


def recurrent(gates: int, step):
    """LSTM, GRU and RNN: `step(x, h, c, r, bias, functions, linear)` gives the next (h, c)."""

    def call(x, w, r, bias=None, lengths=None, h0=None, c0=None, peepholes=None, *, hidden_size,
             direction="forward", activations=None, activation_alpha=None, activation_beta=None,
             clip=None, layout=0, input_forget=0, linear_before_reset=0, node):  # fmt: skip
        full = lengths is None or isinstance(lengths, numpy.ndarray)
        if clip or layout or input_forget or peepholes is not None or not full:
            raise UnreadableNode("it has options that are not supported")
        x, w, r = tensor(x), tensor(w), tensor(r)
        steps, batch = x.spec.shape[:2]
        if isinstance(steps, Dim) or steps > MOST_STEPS:
            raise UnreadableNode(
                f"it runs for {steps} steps; give the length as a number, at most {MOST_STEPS}"
            )
        ways, n = w.spec.shape[0], hidden_size
        names = [a.lower() for a in activations or DEFAULTS[node.kind] * ways]
        each, directions = len(names) // ways, []
        for d in range(ways):
            functions = [function_of(a) for a in names[d * each : (d + 1) * each]]
            back = direction == "reverse" or d == 1
            b = None if bias is None else part(bias, d)
            wx = matmul(x, movement.transpose(part(w, d), perm=(1, 0)))
            b_w, b_r = (
                (None, None)
                if b is None
                else tuple(movement.split(b, sizes=(gates * n,) * 2, axis=0))
            )
            wx = wx if b_w is None else wx + b_w
            zero = creation.full(shape=(batch, n), value=0.0, dtype=x.spec.dtype)
            h = zero if h0 is None else part(h0, d)
            c = zero if c0 is None else part(c0, d)
            rt, outs = movement.transpose(part(r, d), perm=(1, 0)), []
            for t in range(steps)[:: -1 if back else 1]:
                now = movement.slice_(wx, index=(t,))
                h, c = step(now, h, c, rt, b_r, functions, linear_before_reset, n)
                outs.append(h)
            directions.append((movement.stack(*(outs[::-1] if back else outs), axis=0), h, c))
        y, h, c = (movement.stack(*parts, axis=k) for parts, k in zip(zip(*directions), (1, 0, 0)))
        return (y, h, c)[: max(node.results, 1)] if node.results > 1 else y

    return call


DEFAULTS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}


def function_of(name: str):
    if name not in ACTIVATIONS:
        raise UnreadableNode(f"its activation is {name}")
    return ACTIVATIONS[name]


def part(x, d: int) -> Tensor:
    return movement.slice_(tensor(x), index=(d,))


def pieces(x, count: int, n: int) -> tuple:
    return tuple(movement.split(x, sizes=(n,) * count, axis=1))


def add_bias(x, bias):
    return x if bias is None else x + bias


def lstm_step(x, h, c, r, bias, functions, _, n: int):
    f, g, k = functions
    i, o, forget, new = pieces(x + add_bias(matmul(h, r), bias), 4, n)
    c = f(forget) * c + f(i) * g(new)
    return f(o) * k(c), c


def gru_step(x, h, c, r, bias, functions, linear, n: int):
    f, g = functions
    xz, xr, xh = pieces(x, 3, n)
    if linear:
        hz, hr, hh = pieces(add_bias(matmul(h, r), bias), 3, n)
        z, reset = f(xz + hz), f(xr + hr)
        new = g(xh + reset * hh)
    else:
        rz, rr, rh = pieces(r, 3, n)
        bz, br, bh = (None,) * 3 if bias is None else movement.split(bias, sizes=(n,) * 3, axis=0)
        z, reset = (
            f(xz + add_bias(matmul(h, rz), bz)),
            f(xr + add_bias(matmul(h, rr), br)),
        )
        new = g(xh + add_bias(matmul(reset * h, rh), bh))
    return new + z * (h - new), c


def rnn_step(x, h, c, r, bias, functions, _, n: int):
    return functions[0](x + add_bias(matmul(h, r), bias)), c


FUNCTIONS |= {
    "LSTM": recurrent(4, lstm_step), "GRU": recurrent(3, gru_step), "RNN": recurrent(1, rnn_step)
}  # fmt: skip
