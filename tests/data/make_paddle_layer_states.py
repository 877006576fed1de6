"""Writes paddle_layer_states.json: what each of Paddle's layers keeps as state.

Needs real Paddle (tests/requirements-peers.txt): `python tests/data/make_paddle_layer_states.py`.
The file has, for each call in `LAYERS`, one entry per line of `state_dict()`:
key -> [name, shape, dtype, whether it is trained].
"""

import json
from pathlib import Path

LAYERS = """
Linear(3, 4) Linear(3, 4, bias_attr=False) Bilinear(2, 3, 4) Embedding(5, 3) PReLU() PReLU(4)
Embedding(5, 3, padding_idx=0) Identity() Flatten() Dropout() Maxout(2) RReLU() Softmax() Pad2D(1)
Conv1D(4, 6, 3) Conv2D(4, 6, 3) Conv3D(4, 6, 3) Conv2D(4, 6, (3,2), groups=2)
Conv2D(4, 6, 3, bias_attr=False) Conv1DTranspose(4, 6, 3) Conv2DTranspose(4, 6, 3)
Conv3DTranspose(4, 6, 3) Conv2DTranspose(4, 6, (3,2), groups=2)
BatchNorm(4) BatchNorm1D(4) BatchNorm2D(4) BatchNorm3D(4) SyncBatchNorm(4)
BatchNorm2D(4, weight_attr=False, bias_attr=False) BatchNorm2D(4, use_global_stats=True)
BatchNorm(4, trainable_statistics=True) BatchNorm(4, is_test=True)
BatchNorm2D(4, weight_attr=False) SyncBatchNorm(4, weight_attr=False, bias_attr=False)
LayerNorm(4) LayerNorm((2,2,3)) LayerNorm([2,3], weight_attr=False)
LayerNorm([2,3], bias_attr=False) GroupNorm(2, 4)
GroupNorm(2, 4, weight_attr=False, bias_attr=False)
InstanceNorm1D(4) InstanceNorm2D(4) InstanceNorm3D(4)
InstanceNorm2D(4, weight_attr=False, bias_attr=False) LocalResponseNorm(3)
SpectralNorm([2,3,4]) SpectralNorm([2,3,4], dim=1)
SimpleRNNCell(3, 4) LSTMCell(3, 4) GRUCell(3, 4) LSTMCell(3, 4, bias_ih_attr=False)
SimpleRNN(3, 4) LSTM(3, 4) GRU(3, 4) LSTM(3, 4, num_layers=2) GRU(3, 4, direction="bidirect")
LSTM(3, 4, num_layers=2, direction="bidirect") LSTM(3, 4, bias_ih_attr=False)
LSTM(3, 4, proj_size=2) LSTM(3, 4, num_layers=2, proj_size=2) LSTMCell(3, 4, proj_size=2)
LSTM(3, 4, bias_ih_attr=False, bias_hh_attr=False) LSTM(3, 4, weight_ih_attr=False)
RNN(GRUCell(3, 4)) BiRNN(GRUCell(3, 4), GRUCell(3, 4)) GRU(3, 4, bias_hh_attr=False)
MultiHeadAttention(4, 2) MultiHeadAttention(4, 2, kdim=3, vdim=5, bias_attr=False)
TransformerEncoderLayer(4, 2, 8) TransformerEncoderLayer(4, 2, 8, bias_attr=False)
TransformerDecoderLayer(4, 2, 8) TransformerEncoder(TransformerEncoderLayer(4, 2, 8), 2)
TransformerDecoder(TransformerDecoderLayer(4, 2, 8), 2, LayerNorm(4))
Transformer(4, 2, 1, 1, 8)
Sequential(Linear(2, 3), ReLU(), Linear(3, 1)) LayerList([Linear(2, 3), Linear(3, 1)])
LayerDict({"a":Linear(2, 3),"b":ReLU()}) ParameterList([Linear(2, 3).weight])
ParameterDict({"a":Linear(2, 3).weight}) Sequential(("one",Linear(2, 3)), ("two",BatchNorm1D(3)))
CrossEntropyLoss(weight=ones([3])) BCELoss(weight=ones([3])) NLLLoss(weight=ones([3]))
BCEWithLogitsLoss(pos_weight=ones([3])) MultiLabelSoftMarginLoss(weight=ones([3]))
CTCLoss() UpsamplingNearest2D(scale_factor=2) AdaptiveAvgPool2D(1) MaxUnPool2D(2)
utils.weight_norm(Linear(3, 4)) utils.weight_norm(Conv2D(4, 6, 3)) utils.spectral_norm(Linear(3, 4))
utils.weight_norm(Linear(3, 4), dim=None) utils.remove_weight_norm(utils.weight_norm(Linear(3, 4)))
utils.spectral_norm(Conv2D(4, 6, 3)) utils.weight_norm(Conv2D(4, 6, 3), dim=1)
Fold([4,4], 2) PixelShuffle(2) CosineSimilarity()
"""


def calls() -> list[str]:
    """The calls in `LAYERS`; a blank inside brackets does not part two."""
    found, depth, text = [], 0, ""
    for letter in " ".join(LAYERS.split()) + " ":
        depth += (letter in "([{") - (letter in ")]}")
        if letter == " " and not depth:
            found.append(text)
            text = ""
        else:
            text += letter
    return found


def state_of(call: str, paddle) -> dict:
    """key -> [name, shape, dtype, trained] of what the layer keeps; both sides are asked so."""
    from_nn = {name: getattr(paddle.nn, name) for name in dir(paddle.nn)}
    layer = eval(call, from_nn | {"ones": paddle.ones})
    return {
        key: [p.name, list(p.shape), str(p.dtype).rpartition(".")[2], not p.stop_gradient]
        for key, p in layer.state_dict().items()
    }


def main():
    import paddle

    states = {}
    for call in calls():
        with paddle.utils.unique_name.guard():
            states[call] = state_of(call, paddle)
    lines = ",\n".join(f" {json.dumps(call)}: {json.dumps(states[call])}" for call in states)
    text = f'{{"paddle_version": "{paddle.__version__}", "states": {{\n{lines}\n}}}}\n'
    Path(__file__).with_name("paddle_layer_states.json").write_text(text)


if __name__ == "__main__":
    main()
