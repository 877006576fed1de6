"""Optimizers: each is one formula from a parameter and its gradient to the new parameter."""

from . import lr, rate
from .adam import Adam, Adamax, AdamW, Lamb
from .adaptive import Adadelta, Adagrad, RMSProp
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD, Momentum
from .uncommon_rules import ASGD, NAdam, RAdam, Rprop
