"""Learning-rate schedules: the rate as a function of how often `step()` was called."""

from ...core.missing import namespace
from .cyclic import (
    CosineAnnealingDecay,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LinearLR,
    OneCycleLR,
)
from .decay import (
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    LinearWarmup,
    MultiplicativeDecay,
    MultiStepDecay,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)
from .plateau import ReduceOnPlateau
from .scheduler import LRScheduler

__all__ = [
    "CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialDecay",
    "InverseTimeDecay", "LRScheduler", "LambdaDecay", "LinearLR", "LinearWarmup", "MultiStepDecay",
    "MultiplicativeDecay", "NaturalExpDecay", "NoamDecay", "OneCycleLR", "PiecewiseDecay",
    "PolynomialDecay", "ReduceOnPlateau", "StepDecay",
]  # fmt: skip

__getattr__ = namespace("paddle.optimizer.lr", globals())
