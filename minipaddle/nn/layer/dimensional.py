"""Layers that exist for one, two and three image axes, written once."""

from __future__ import annotations

import inspect

from ..functional.dimensions import for_axes
from ..functional.windows import LAYOUTS
from .layers import Layer


class Dimensional(Layer):
    """The base of such families: `class Conv3D(Convolution, n=3): ...`.

    Where `data_format` is None it is the one with channels first, which the signature shows. A
    layer without a docstring has that of its base, which is about images.
    """

    n = 0
    """Image axes."""

    def __init_subclass__(cls, n: int = 0, **kwargs):
        super().__init_subclass__(**kwargs)
        if not n:
            return
        cls.n = n
        own = inspect.signature(cls)
        layout = own.parameters["data_format"].replace(default=LAYOUTS[n][0])
        parameters = {**own.parameters, "data_format": layout}
        cls.__signature__ = own.replace(parameters=list(parameters.values()))
        cls.__doc__ = cls.__doc__ or for_axes(cls.__base__.__doc__, n)

    def layout(self, data_format: str | None) -> str:
        """The data format asked for, or the one with channels first."""
        return LAYOUTS[self.n][0] if data_format is None else data_format
