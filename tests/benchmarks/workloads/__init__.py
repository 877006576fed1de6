"""The workloads by name, in the order of the table."""

from .chain import CHAIN
from .decode import DECODE, TOKEN, TOKENS
from .gpt import GPT, GPT_LONG, GPT_PREDICTS
from .lenet import LENET
from .loop import LOOP
from .lstm import LSTM
from .mlp import MLP, PREDICTS, TINY, WIDE, WIDE_PREDICTS, WIDER
from .resnet import RESNET, RESNET_PREDICTS

WORKLOADS = {
    "tiny": TINY,
    "mlp": MLP,
    "lstm": LSTM,
    "gpt": GPT,
    "gpt-long": GPT_LONG,
    "lenet": LENET,
    "resnet": RESNET,
    "chain": CHAIN,
    "gpt-inference": GPT_PREDICTS,
    "resnet-inference": RESNET_PREDICTS,
    "mlp-1024": WIDE,
    "mlp-2048": WIDER,
    "mlp-1": PREDICTS,
    "mlp-1-wide": WIDE_PREDICTS,
    "while": LOOP,
    "decode": DECODE,
    "token": TOKEN,
    "tokens": TOKENS,
}
