"""Recurrent networks: a cell carried along a sequence, in one direction or both, layer on layer."""

import inspect

from ...core.prelude import creation, e, indexing, int64, movement, require_one_of, value_error
from ...engine.core.dim import Dim, suppose
from ...engine.core.dispatch import current
from ...engine.eager.control_flow import while_loop
from ...engine.jit.tree import flatten, unflatten
from ...ops import arrangement
from .. import functional as F
from .cells import GatedCell, GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from .container import LayerList
from .layers import Layer

__all__ = [
    "GRU", "LSTM", "RNN", "BiRNN", "GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNN",
    "SimpleRNNCell",
]  # fmt: skip


def map_nested(function, *states):
    """`function` on the tensors of states that are nested in the same way."""
    if isinstance(states[0], list | tuple):
        return tuple(map_nested(function, *parts) for parts in zip(*states, strict=True))
    return function(*states)


LONG = 32
"""A sequence of more steps is a loop in a program: unrolled it would be compiled for seconds."""


def unroll(cell, inputs, states, lengths, *, reverse: bool, time_major: bool, **kwargs):
    """Carry `cell`, a layer or a function, along the inputs; gives (outputs, final states).

    Past a sequence's length its outputs are zero and its states stay.
    """
    time = 0 if time_major else 1
    if states is None:
        states = cell.get_initial_states(inputs, batch_dim_idx=1 - time)
    size = inputs.spec.shape[time]
    ours = isinstance(cell, GatedCell) or not isinstance(cell, Layer)
    long = not isinstance(size, Dim) and size > LONG and ours
    loop = isinstance(size, Dim) or (long and current.top.tracing)
    inputs = transpose_first(inputs) if loop and time else inputs
    if isinstance(cell, GatedCell):
        step, inputs = cell.stepper(), cell.project(inputs)
    else:

        def step(x, states):
            return cell(x, states, **kwargs)

    def mask_padding(k, output, new, states):
        if lengths is None:
            return output, new
        inside = lengths.unsqueeze(1) > k
        output = map_nested(lambda y: e.where(inside, y, 0.0), output)
        return output, map_nested(lambda a, b: e.where(inside, a, b), new, states)

    if loop:
        outputs, states = scan(step, mask_padding, inputs, states, reverse)
        return map_nested(transpose_first, outputs) if time else outputs, states
    steps = movement.unstack(inputs, axis=time)
    outputs = [None] * len(steps)
    for k in reversed(range(len(steps))) if reverse else range(len(steps)):
        outputs[k], states = mask_padding(k, *step(steps[k], states), states)
    return map_nested(lambda *ys: movement.stack(*ys, axis=time), *outputs), states


def scan(step, mask_padding, inputs, states, reverse: bool):
    """The same as `unroll` for inputs [time, …], as a loop in a program: for a length that only a
    run knows, or a long sequence.

    The loop carries each output into the next iteration, so their history lacks the last one. What
    is an output and a state is carried once.
    """
    size = inputs.spec.shape[0]

    def advance(k, states):
        at = size - 1 - k if reverse else k
        output, new = mask_padding(at, *step(indexing.take(inputs, at, axis=0), states), states)
        new, (outputs, form) = flatten(new)[0], flatten(output)
        own = {*map(id, new)}
        return [*new, *(y for y in outputs if id(y) not in own)], outputs, form

    def iteration(k, *carried):
        return [k + 1, *advance(k, unflatten(form, carried[: len(first)]))[0]]

    begin = creation.full(shape=(), value=0, dtype=int64.numpy)
    first, form = flatten(states)
    following, outputs, form_of_outputs = advance(begin, states)
    zeros = [
        creation.full(shape=x.spec.shape, value=0.0, dtype=x.spec.dtype)
        for x in following[len(first) :]
    ]
    last, before = while_loop(
        lambda k, *_: k < size, iteration, [begin, *first, *zeros], stacked=True, trip_count=size
    )

    def join(x):
        k = 1 + [*map(id, following)].index(id(x))
        suppose(before[k].spec.shape[0], "==", size)
        history = movement.reshape(before[k], shape=(size, *x.spec.shape))
        history = movement.slice_(history, index=((1, None, None),))
        final = movement.reshape(last[k], shape=(1, *x.spec.shape))
        steps = movement.concat(history, final, axis=0)
        return arrangement.flip(steps, axis=(0,)) if reverse else steps

    states = unflatten(form, last[1 : 1 + len(first)])
    return unflatten(form_of_outputs, [*map(join, outputs)]), states


def transpose_first(x):
    """x with its first two axes exchanged."""
    return movement.transpose(x, perm=(1, 0, *range(2, x.spec.ndim)))


class RNN(Layer):
    """`cell` carried along a sequence: [batch, time, size] (`time_major`: [time, batch, size]).

    `forward(inputs, initial_states=None, sequence_length=None)` gives (outputs, final states); past
    a sequence's length outputs are zero and states stay. `is_reverse` runs from the end.

    >>> rnn = paddle.nn.RNN(paddle.nn.GRUCell(3, 4))
    >>> outputs, state = rnn(paddle.ones([2, 5, 3]))
    >>> outputs.shape, state.shape
    ([2, 5, 4], [2, 4])
    """

    def __init__(self, cell, is_reverse=False, time_major=False):
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        kwargs |= {"reverse": self.is_reverse, "time_major": self.time_major}
        return unroll(self.cell, inputs, initial_states, sequence_length, **kwargs)


class BiRNN(Layer):
    """One cell carried forwards and one backwards; their outputs side by side.

    `forward` is that of `RNN`; states are pairs (forward, backward). Source: Schuster and Paliwal
    1997.

    >>> cells = paddle.nn.GRUCell(3, 4), paddle.nn.GRUCell(3, 4)
    >>> outputs, states = paddle.nn.BiRNN(*cells)(paddle.ones([2, 5, 3]))
    >>> outputs.shape
    [2, 5, 8]
    """

    def __init__(self, cell_fw, cell_bw, time_major=False):
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        first, second = (None, None) if initial_states is None else initial_states
        kwargs["time_major"] = self.time_major
        ahead, left = unroll(self.cell_fw, inputs, first, sequence_length, reverse=False, **kwargs)
        back, right = unroll(self.cell_bw, inputs, second, sequence_length, reverse=True, **kwargs)
        both = map_nested(lambda a, b: movement.concat(a, b, axis=a.spec.ndim - 1), ahead, back)
        return both, (left, right)


DIRECTIONS = {"forward": 1, "bidirect": 2, "bidirectional": 2}


class Stacked(LayerList):
    """Stacked layers of RNN or BiRNN: `class GRU(Stacked, cell=GRUCell)`.

    The constructor takes what the cell takes, with the arguments of the stack before those that
    follow the sizes. The parameters of layer k are known as `weight_ih_lk`, …, `bias_hh_lk`, and
    with `_reverse` for the backward direction. As in Paddle, whose files have these names too, an
    attribute that is False leaves its name out, and the names go to the parameters in order.
    """

    def __init_subclass__(cls, cell: type[GatedCell] | None = None, **kwargs):
        super().__init_subclass__(**kwargs)
        if cell is not None:
            *own, _, _ = inspect.signature(Stacked).parameters.values()
            _, _, *rest = inspect.signature(cell).parameters.values()
            cls.cell_class, cls.__signature__ = cell, inspect.Signature([*own, *rest])

    def __init__(
        self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False,
        dropout=0.0, *given, **named,
    ):  # fmt: skip
        super().__init__()
        require_one_of(type(self).__name__, DIRECTIONS, direction=direction)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, dropout
        self.num_directions = directions = DIRECTIONS[direction]
        for k in range(num_layers):
            size = input_size if k == 0 else self.output_size
            cells = [self.cell_class(size, hidden_size, *given, **named) for _ in range(directions)]
            self.output_size = directions * (cells[0].proj_size or hidden_size)
            self.append((RNN if directions == 1 else BiRNN)(*cells, time_major=time_major))
        bound = inspect.signature(self.cell_class).bind(input_size, hidden_size, *given, **named)
        names = [
            f"{name}_l{k}{suffix}"
            for k in range(num_layers)
            for suffix in ("", "_reverse")[:directions]
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            if name.startswith("weight") or bound.arguments.get(f"{name}_attr") is not False
        ]
        for name, parameter in zip(names, self.parameters(), strict=False):
            self.add_parameter(name, parameter)

    def forward(self, inputs, initial_states=None, sequence_length=None):
        """Outputs of the last layer, and the final states [layers · directions, batch, hidden]."""
        states = self._split_by_layer(initial_states)
        finals = []
        for k, layer in enumerate(self):
            if k and self.dropout:
                inputs = F.dropout(inputs, self.dropout, training=self.training)
            inputs, final = layer(inputs, states[k], sequence_length)
            finals += final if self.num_directions == 2 else [final]
        return inputs, map_nested(lambda *xs: movement.stack(*xs, axis=0), *finals)

    def flatten_parameters(self) -> None:
        """Nothing is to be done: Paddle joins the parameters to one block for cuDNN."""

    def _split_by_layer(self, states) -> list:
        """The initial states that each layer expects."""
        if states is None:
            return [None] * self.num_layers
        many = isinstance(states, list | tuple)
        slices = [movement.unstack(x, axis=0) for x in (states if many else [states])]
        each = [xs if many else xs[0] for xs in zip(*slices)]
        wanted = self.num_layers * self.num_directions
        if len(each) != wanted:
            raise value_error(
                f"{type(self).__name__} was given initial states of {len(each)} layers",
                f"{wanted}: layers times directions",
            )
        if self.num_directions == 1:
            return each
        return list(zip(each[::2], each[1::2], strict=True))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        text += f", time_major={self.time_major}" if self.time_major else ""
        return text + (f", dropout={self.dropout}" if self.dropout else "")


class SimpleRNN(Stacked, cell=SimpleRNNCell):
    """Layers of `SimpleRNNCell` along a sequence: [batch, time, input_size] to
    ([batch, time, directions · hidden_size], final states).

    `dropout` acts between layers.

    >>> outputs, h = paddle.nn.SimpleRNN(3, 4, num_layers=2)(paddle.ones([2, 5, 3]))
    >>> outputs.shape, h.shape
    ([2, 5, 4], [2, 2, 4])
    """


class LSTM(Stacked, cell=LSTMCell):
    """Layers of `LSTMCell` along a sequence; states are pairs (h, c).

    With `proj_size` outputs and h are so small.

    >>> lstm = paddle.nn.LSTM(3, 4, direction="bidirect")
    >>> outputs, (h, c) = lstm(paddle.ones([2, 5, 3]))
    >>> outputs.shape, h.shape
    ([2, 5, 8], [2, 2, 4])
    """


class GRU(Stacked, cell=GRUCell):
    """Layers of `GRUCell` along a sequence.

    >>> outputs, h = paddle.nn.GRU(3, 4, time_major=True)(paddle.ones([5, 2, 3]))
    >>> outputs.shape, h.shape
    ([5, 2, 4], [1, 2, 4])
    """
