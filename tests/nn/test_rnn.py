"""Recurrent cells and networks against torch: outputs, states, gradients of all parameters."""

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle import nn
from tests.nn.oracle import agree, flat, values

X = values(3, 5, 4)
LENGTHS = np.array([5, 2, 3])
KINDS = {
    "SimpleRNN": (nn.SimpleRNN, torch.nn.RNN),
    "LSTM": (nn.LSTM, torch.nn.LSTM),
    "GRU": (nn.GRU, torch.nn.GRU),
}
CELLS = {
    "SimpleRNN": (nn.SimpleRNNCell, torch.nn.RNNCell),
    "LSTM": (nn.LSTMCell, torch.nn.LSTMCell),
    "GRU": (nn.GRUCell, torch.nn.GRUCell),
}


def load(ours, theirs):
    """Copy torch's parameters by name; Paddle's and torch's names and gate orders are the same."""
    ours.to(dtype="float64")
    for name, p in theirs.named_parameters():
        getattr(ours, name).set_value(p.detach().numpy())
    return ours, theirs


def pair(kind, *, layers=1, both=False, time_major=False, hidden=6, **kwargs):
    make_ours, make_theirs = KINDS[kind]
    ours = make_ours(4, hidden, layers, "bidirect" if both else "forward", time_major, **kwargs)
    theirs = make_theirs(4, hidden, layers, bidirectional=both, batch_first=not time_major).double()
    return load(ours, theirs)


def gradients_agree(ours, theirs):
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(
            getattr(ours, name).grad.numpy(), p.grad.numpy(), 1e-7, 1e-10, err_msg=name
        )


def total(results):
    """A scalar that weighs every element differently."""
    return sum((y * y).sum() * (k + 1) for k, y in enumerate(flat(results)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("time_major", [False, True])
def test_networks(kind, both, layers, time_major):
    ours, theirs = pair(kind, layers=layers, both=both, time_major=time_major)
    agree(ours, theirs, X)
    total(ours(paddle.to_tensor(X))).backward()
    total(theirs(torch.from_numpy(X))).backward()
    gradients_agree(ours, theirs)


@pytest.mark.parametrize("both", [False, True])
def test_projected_states(both):
    ours = nn.LSTM(4, 6, 2, "bidirect" if both else "forward", proj_size=3)
    theirs = torch.nn.LSTM(4, 6, 2, bidirectional=both, batch_first=True, proj_size=3).double()
    ours.to(dtype="float64")
    for name, p in theirs.named_parameters():
        part, _, rest = name.rpartition("_l")
        cell = ours[int(rest[0])]
        cell = (cell.cell_bw if "reverse" in rest else cell.cell_fw) if both else cell.cell
        value = p.detach().numpy()
        getattr(cell, part.replace("hr", "ho")).set_value(value.T if "hr" in part else value)
    agree(ours, theirs, X)


def test_a_parameter_left_out_is_there_and_not_trained():
    cell = nn.LSTMCell(2, 3, weight_ih_attr=False, bias_hh_attr=False)
    for parameter, value in ((cell.weight_ih, 1), (cell.bias_hh, 0)):
        assert (parameter == value).all()
        assert parameter.stop_gradient


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states(kind):
    ours, theirs = pair(kind, layers=2, both=True)
    h, c = values(4, 3, 6), values(4, 3, 6, seed=1)
    if kind == "LSTM":
        agree(lambda x, h, c: ours(x, (h, c)), lambda x, h, c: theirs(x, (h, c)), X, h, c)
    else:
        agree(ours, theirs, X, h)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_sequence_lengths(kind, both):
    """torch's packed sequences: states stop at the end, outputs are zero after it."""
    ours, theirs = pair(kind, layers=2, both=both)

    def packed(x):
        pack = torch.nn.utils.rnn.pack_padded_sequence(
            x, torch.from_numpy(LENGTHS), batch_first=True, enforce_sorted=False
        )
        out, states = theirs(pack)
        return torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], states

    agree(lambda x: ours(x, None, paddle.to_tensor(LENGTHS)), packed, X)


@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind):
    make_ours, make_theirs = CELLS[kind]
    ours, theirs = load(make_ours(4, 6), make_theirs(4, 6).double())
    x = X[:, 0]
    agree(lambda x: ours(x)[1], theirs, x, order=2)
    h = values(3, 6, seed=2)
    if kind == "LSTM":
        agree(lambda x, h: ours(x, (h, 2 * h))[1], lambda x, h: theirs(x, (h, 2 * h)), x, h)
    else:
        agree(lambda x, h: ours(x, h)[0], theirs, x, h, order=2)


@pytest.mark.parametrize("kind", CELLS)
def test_rnn_of_a_cell_is_the_network(kind):
    network = KINDS[kind][0](4, 6, direction="bidirect")
    x, lengths = paddle.to_tensor(X.astype("float32")), paddle.to_tensor(LENGTHS)
    cells = network[0].cell_fw, network[0].cell_bw
    outputs, states = nn.BiRNN(*cells)(x, sequence_length=lengths)
    want, finals = network(x, None, lengths)
    np.testing.assert_allclose(outputs.numpy(), want.numpy())
    ahead, last = nn.RNN(cells[0])(x, sequence_length=lengths)
    back, first = nn.RNN(cells[1], is_reverse=True)(x, sequence_length=lengths)
    np.testing.assert_allclose(ahead.numpy(), want.numpy()[..., :6])
    np.testing.assert_allclose(back.numpy(), want.numpy()[..., 6:])
    for k, state in enumerate(zip(flat(last), flat(first), flat(finals), strict=True)):
        np.testing.assert_allclose(state[0].numpy(), state[2].numpy()[0], err_msg=str(k))
        np.testing.assert_allclose(state[1].numpy(), state[2].numpy()[1], err_msg=str(k))
    given, _ = nn.BiRNN(*cells)(x, states, lengths)
    assert (given != outputs).any()


def test_relu():
    ours = nn.SimpleRNN(4, 6, activation="relu").to(dtype="float64")
    theirs = torch.nn.RNN(4, 6, nonlinearity="relu", batch_first=True).double()
    agree(*load(ours, theirs), X)


def test_without_bias():
    ours = nn.GRU(4, 6, bias_ih_attr=False, bias_hh_attr=False).to(dtype="float64")
    theirs = torch.nn.GRU(4, 6, bias=False, batch_first=True).double()
    agree(*load(ours, theirs), X)
    one = nn.LSTM(4, 6, bias_hh_attr=False)
    assert one(paddle.ones([1, 2, 4]))[0].shape == [1, 2, 6]


def test_dropout_acts_between_layers_while_training():
    network = nn.GRU(4, 30, num_layers=2, dropout=0.5)
    x = paddle.to_tensor(X.astype("float32"))
    assert (network(x)[0] != network(x)[0]).any()
    network.eval()
    assert (network(x)[0] == network(x)[0]).all()
    single = nn.GRU(4, 30, dropout=0.5)
    assert (single(x)[0] == single(x)[0]).all()


def test_training_an_lstm_over_several_steps():
    ours, theirs = pair("LSTM", layers=2)
    step = torch.optim.SGD(theirs.parameters(), 0.1)
    target = values(3, 5, 6, seed=4)
    for _ in range(3):
        ((ours(paddle.to_tensor(X))[0] - paddle.to_tensor(target)) ** 2).mean().backward()
        step.zero_grad()
        ((theirs(torch.from_numpy(X))[0] - torch.from_numpy(target)) ** 2).mean().backward()
        gradients_agree(ours, theirs)
        step.step()
        with paddle.no_grad():
            for p in ours.parameters():
                p.set_value(p - 0.1 * p.grad)
                p.clear_grad()


# ---- cells of one's own ------------------------------------------------------------------------


class Counter(nn.RNNCellBase):
    """Adds up its inputs; its states are nested, its output is a pair."""

    def forward(self, inputs, states, scale=1.0):
        total, (steps,) = states
        total, steps = total + scale * inputs, steps + 1
        return (total, -total), (total, (steps,))

    @property
    def state_shape(self):
        return ((4,), ((1,),))


def test_a_cell_of_ones_own():
    rnn = nn.RNN(Counter())
    x = paddle.to_tensor(X)
    (up, down), (total, (steps,)) = rnn(x, scale=2.0)
    np.testing.assert_allclose(up.numpy(), 2 * np.cumsum(X, 1))
    np.testing.assert_allclose(down.numpy(), -up.numpy())
    assert steps.tolist() == [[5.0]] * 3
    (up, _), (total, (steps,)) = rnn(x, sequence_length=paddle.to_tensor(LENGTHS))
    assert steps.tolist() == [[5.0], [2.0], [3.0]]
    np.testing.assert_allclose(total.numpy()[1], X[1, :2].sum(0))
    assert up[1, 2:].abs().sum().item() == 0


def test_get_initial_states():
    cell = nn.LSTMCell(4, 6)
    h, c = cell.get_initial_states(paddle.ones([3, 4]), init_value=2.0)
    assert (h.shape, c[0, 0].item()) == ([3, 6], 2.0)
    state = cell.get_initial_states(paddle.ones([5, 3]), [-1, 7], "float64", batch_dim_idx=1)
    assert (state.shape, state.dtype) == ([3, 7], paddle.float64)


# ---- parameters, text, mistakes ----------------------------------------------------------------


def test_parameters_are_shared_under_two_names():
    network = nn.LSTM(2, 3)
    assert list(network.state_dict()) == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
        "0.cell.weight_ih", "0.cell.weight_hh", "0.cell.bias_ih", "0.cell.bias_hh",
    ]  # fmt: skip
    assert len(network.parameters()) == 4
    assert network.weight_ih_l0 is network[0].cell.weight_ih
    bound = 3**-0.5
    assert all(p.abs().max().item() <= bound for p in network.parameters())
    assert network.bias_ih_l0.abs().max().item() > 0


def test_text():
    """As real Paddle prints them."""
    assert repr(nn.LSTM(2, 3)) == "LSTM(2, 3\n  (0): RNN(\n    (cell): LSTMCell(2, 3)\n  )\n)"
    network = nn.GRU(2, 3, 2, direction="bidirect", dropout=0.2, time_major=True)
    assert repr(network).startswith(
        "GRU(2, 3, num_layers=2, time_major=True, dropout=0.2\n  (0): Bi"
    )
    assert repr(nn.SimpleRNNCell(2, 3, "relu")) == "SimpleRNNCell(2, 3, activation=relu)"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: nn.LSTM(2, 3, direction="back"), ValueError, "'bidirect'"),
        (lambda: nn.LSTM(2, 3, proj_size=3), ValueError, "less than hidden_size=3"),
        (lambda: nn.SimpleRNN(2, 3, activation="gelu"), ValueError, "'tanh' or 'relu'"),
        (lambda: nn.GRUCell(2, 0), ValueError, "hidden_size=0"),
        (lambda: nn.GRU(2, 3)(paddle.ones([1, 4, 5])), ValueError, "last dimension"),
        (lambda: nn.GRU(2, 3)(paddle.ones([1, 4, 2]), paddle.ones([2, 1, 3])), ValueError, "of 2"),
        (lambda: nn.RNN(nn.RNNCellBase())(paddle.ones([1, 2, 3])), NotImplementedError, "state_sh"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call()
