"""`as_mixed_precision`: a level with its settings, for `Model.prepare` and `dist.Strategy`."""

import inspect
from functools import partial

from ..engine.core.errors import value_error
from .auto_cast import auto_cast
from .decorate import decorate
from .grad_scaler import GradScaler

SCALING = frozenset(inspect.signature(GradScaler.__init__).parameters) - {"self", "enable"}
CASTING = frozenset(inspect.signature(auto_cast).parameters) - {"enable"}


def as_mixed_precision(network, optimizer, configs) -> tuple:
    """(a function that gives the block in which a batch is computed, the scaler of its loss).

    `configs` is a level, or {"level": ..., and arguments of `auto_cast` and of `GradScaler`}. At
    level "O2" the network and the optimizer are decorated. Raises ValueError for what there is not.

    >>> from minipaddle.amp.configs import as_mixed_precision
    >>> net = paddle.nn.Linear(2, 1)
    >>> block, scaler = as_mixed_precision(net, None, {"level": "O1", "dtype": "bfloat16"})
    >>> with block():
    ...     net(paddle.ones([3, 2])).dtype
    paddle.bfloat16
    """
    options = {"level": configs} if isinstance(configs, str) else dict(configs or {"level": "O0"})
    if unknown := options.keys() - SCALING - CASTING:
        raise value_error(
            f"amp_configs with {min(unknown)!r}", ", ".join(sorted(SCALING | CASTING))
        )
    how = {name: options[name] for name in CASTING & options.keys()}
    level, enable = how.setdefault("level", "O1"), how["level"] != "O0"
    with auto_cast(enable, **how):  # which checks its arguments on entry
        scaler = GradScaler(enable, **{name: options[name] for name in SCALING & options.keys()})
    if level == "O2":
        decorate(network, optimizer, level, how.get("dtype", "float16"))
    return partial(auto_cast, enable, **how), scaler
