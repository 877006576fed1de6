"""Optimizers: each is one formula from a parameter and its gradient to the new parameter."""

from ..core.missing import namespace
from . import lr, rate
from .adam import Adam, Adamax, AdamW, Lamb
from .adaptive import Adadelta, Adagrad, RMSProp
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .rarer import ASGD, NAdam, RAdam, Rprop
from .sgd import SGD, Momentum

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lamb", "Momentum",
    "NAdam", "Optimizer", "RAdam", "RMSProp", "Rprop", "lr", "rate",
]  # fmt: skip

__getattr__ = namespace("paddle.optimizer", globals())
