"""One step of a recurrent network: the cells of SimpleRNN, LSTM and GRU."""

import math

from ...core.prelude import movement, not_supported, require_one_of, value_error
from ...engine.ops.special import sigmoid, tanh
from ...tensor import creation
from .. import functional as F
from ..initializer import Constant, Uniform
from ..param_attr import ParamAttr
from .common import require_positive
from .layers import Layer

__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]


class RNNCellBase(Layer):
    """The base of cells: `forward(inputs, states)` gives (output, new states).

    A cell of your own says in `state_shape` what its states look like without the batch, as a list
    of numbers or a tuple of such lists.

    >>> class Sum(paddle.nn.RNNCellBase):
    ...     state_shape = (2,)
    ...
    ...     def forward(self, inputs, states):
    ...         return states + inputs, states + inputs
    >>> outputs, total = paddle.nn.RNN(Sum())(paddle.ones([1, 5, 2]))
    >>> total.tolist()
    [[5.0, 5.0]]
    """

    def get_initial_states(
        self, batch_ref, shape=None, dtype=None, init_value=0.0, batch_dim_idx=0
    ):
        """States filled with `init_value`, for the batch size that `batch_ref` has."""
        shape = self.state_shape if shape is None else shape
        dtype = batch_ref.dtype if dtype is None else dtype
        rows = batch_ref.spec.shape[batch_dim_idx]

        def fill(shape):
            if shape and not isinstance(shape[0], int):
                return tuple(map(fill, shape))
            own = [n for n in shape if n != -1]
            return creation.full([rows, *own], init_value, dtype)

        return fill(shape)

    @property
    def state_shape(self):
        raise not_supported(
            f"{type(self).__name__} does not say the shape of its states",
            hint="define the property state_shape, or pass initial states",
        )


class GatedCell(RNNCellBase):
    """The base of the three cells: weights for the input and for the state, with the gates stacked.

    What the input contributes needs no state, so `project` does it for a whole sequence in one
    matrix product; `stepper` gives the function that goes from step to step.
    """

    gates = 1
    proj_size = 0
    """The size of the output, if it is not the size of the state."""

    def __init__(
        self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
        bias_hh_attr=None, name=None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        require_positive(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        rows, outputs = self.gates * hidden_size, self.proj_size or hidden_size
        self.weight_ih = self._create([rows, input_size], weight_ih_attr)
        self.weight_hh = self._create([rows, outputs], weight_hh_attr)
        self.bias_ih = self._create([rows], bias_ih_attr, is_bias=True)
        self.bias_hh = self._create([rows], bias_hh_attr, is_bias=True)

    def _create(self, shape, attr, is_bias: bool = False):
        """A parameter; where `attr` is False, weights of 1 or biases of 0 that are not trained."""
        bound = 1 / math.sqrt(self.hidden_size)
        draw = Uniform(-bound, bound)
        if attr is False:
            attr, draw = ParamAttr(trainable=False), Constant(0.0 if is_bias else 1.0)
        return self.create_parameter(shape, attr, is_bias=is_bias, default_initializer=draw)

    def project(self, inputs):
        """The contribution of the inputs [..., input_size] to the gates: [..., gates · hidden]."""
        return F.linear(inputs, self.weight_ih.transpose([1, 0]), self.bias_ih + self.bias_hh)

    def stepper(self):
        """The function (projected inputs, states) -> (output, new states)."""
        raise NotImplementedError

    def forward(self, inputs, states=None):
        states = self.get_initial_states(inputs) if states is None else states
        return self.stepper()(self.project(inputs), states)

    state_shape = property(lambda self: (self.hidden_size,))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


ACTIVATIONS = {"tanh": tanh, "relu": F.relu}


class SimpleRNNCell(GatedCell):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh), act being tanh or relu; gives (h', h').

    Source: Elman 1990.

    >>> cell = paddle.nn.SimpleRNNCell(3, 4)
    >>> output, state = cell(paddle.ones([2, 3]))
    >>> output.shape
    [2, 4]
    """

    def __init__(
        self, input_size, hidden_size, activation="tanh", weight_ih_attr=None, weight_hh_attr=None,
        bias_ih_attr=None, bias_hh_attr=None, name=None,
    ):  # fmt: skip
        attrs = weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        super().__init__(input_size, hidden_size, *attrs)
        require_one_of("SimpleRNNCell", ACTIVATIONS, activation=activation)
        self.activation = activation

    def stepper(self):
        act, weight = ACTIVATIONS[self.activation], self.weight_hh.transpose([1, 0])

        def step(x, h):
            h = act(x + F.linear(h, weight))
            return h, h

        return step

    def extra_repr(self) -> str:
        other = "" if self.activation == "tanh" else f", activation={self.activation}"
        return f"{super().extra_repr()}{other}"


class LSTMCell(GatedCell):
    """c' = f · c + i · g, h' = o · tanh(c'); i, f, o sigmoids and g the tanh of affine maps of
    x and h, stacked in the order i, f, g, o. Gives (h', (h', c')).

    With `proj_size` there is one more product, h' = o · tanh(c') @ weight_ho, and h' is so small.
    Source: Hochreiter and Schmidhuber 1997; Sak et al. 2014.

    >>> output, (h, c) = paddle.nn.LSTMCell(3, 4)(paddle.ones([2, 3]))
    >>> output.shape, c.shape
    ([2, 4], [2, 4])
    """

    gates = 4

    def __init__(
        self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
        bias_hh_attr=None, proj_size=0, name=None,
    ):  # fmt: skip
        if not 0 <= proj_size < hidden_size:
            raise value_error(
                f"{type(self).__name__} was given proj_size={proj_size}",
                f"0, or less than hidden_size={hidden_size}",
            )
        attrs = weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        self.proj_size = proj_size
        super().__init__(input_size, hidden_size, *attrs)
        if proj_size:
            self.weight_ho = self._create([hidden_size, proj_size], weight_hh_attr)

    def stepper(self):
        weight, sizes = self.weight_hh.transpose([1, 0]), (self.hidden_size,) * 4
        project = self.weight_ho if self.proj_size else None

        def step(x, states):
            h, c = states
            i, f, g, o = movement.split(x + F.linear(h, weight), sizes=sizes, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * tanh(g)
            h = sigmoid(o) * tanh(c)
            h = h if project is None else h @ project
            return h, (h, c)

        return step

    @property
    def state_shape(self):
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(GatedCell):
    """h' = z · h + (1 - z) · c, with c = tanh(W_c x + b + r · (U_c h + d)); r and z are sigmoids,
    stacked in the order r, z, c. Gives (h', h').

    Source: Cho et al. 2014.

    >>> output, state = paddle.nn.GRUCell(3, 4)(paddle.ones([2, 3]))
    >>> output.shape
    [2, 4]
    """

    gates = 3

    def project(self, inputs):
        return F.linear(inputs, self.weight_ih.transpose([1, 0]), self.bias_ih)

    def stepper(self):
        weight, n = self.weight_hh.transpose([1, 0]), self.hidden_size

        def step(x, h):
            x_gates, x_c = movement.split(x, sizes=(2 * n, n), axis=1)
            own = F.linear(h, weight, self.bias_hh)
            h_gates, h_c = movement.split(own, sizes=(2 * n, n), axis=1)
            r, z = movement.split(sigmoid(x_gates + h_gates), sizes=(n, n), axis=1)
            c = tanh(x_c + r * h_c)
            h = c + z * (h - c)
            return h, h

        return step
