"""Layers that rounded in training, as inference has them: scales, and whole numbers."""

from ...core.prelude import Tensor, not_supported, reshape, value_error
from ...ops.quantization import dequantize, quantize, width
from ...ops.quantized import Quantized
from ..initializer import Assign
from ..layer.layers import Layer
from ..param_attr import ParamAttr


def register_values(layer: Layer, values: Tensor):
    """Values that a layer keeps and does not train."""
    attr = ParamAttr(initializer=Assign(values.numpy()), trainable=False)
    return layer.create_parameter(values.shape, attr, "float32")


def parameters_of_quanter(quanter) -> tuple:
    """The findings of an observer or a quanter: scales, zero points, their axis, bits."""
    return quanter.scales(), quanter.zero_points(), quanter.quant_axis(), quanter.bit_length()


class Scaled(Layer):
    """Scales and zero points: of a whole tensor, of each index along `quant_axis`, or, where the
    scales [groups, out] are two-dimensional, of groups of rows of a matrix [in, out].
    """

    def __init__(self, scales, zero_point=None, quant_axis=None, bit_length=8, group_size=128):
        super().__init__()
        self._scales = register_values(self, scales)
        symmetric = zero_point is None or not zero_point.any()
        self._zero_point = None if symmetric else register_values(self, zero_point)
        self._quant_axis = -1 if quant_axis is None else quant_axis
        self._bit_length, self._group_size = bit_length, group_size
        self._qmin, self._qmax = width(bit_length).values()

    @classmethod
    def from_quanter(cls, quanter):
        """The layer with the scales that an observer or a quanter has found."""
        return cls(*parameters_of_quanter(quanter))

    @property
    def in_groups(self) -> bool:
        return len(self._scales.spec.shape) > 1

    def forward(self, input):
        """The input, converted; a matrix in groups as [groups, rows of a group, out] meanwhile."""
        if not self.in_groups:
            return self.convert(input, *self.expand(input))
        groups, (rows, out) = self._scales.shape[0], input.spec.shape
        if rows % groups:
            raise value_error(f"{rows} rows in {groups} groups", "rows in groups of one size")
        x = reshape(input, shape=(groups, rows // groups, out))
        return reshape(self.convert(x, *self.expand(x)), shape=(rows, out))

    def expand(self, x) -> tuple:
        """Scale and zero point in shapes that broadcast to a (grouped) tensor."""
        ndim, own = len(x.spec.shape), self._scales.spec.shape
        if len(own) > 1:
            shape = own[0], 1, own[1]
        elif own == (1,) or not own:
            shape = ()
        else:
            shape = tuple([own[0] if d == self._quant_axis else 1 for d in range(ndim)])
        zero = self._zero_point
        return reshape(self._scales, shape=shape), 0.0 if zero is None else reshape(
            zero, shape=shape
        )

    def extra_repr(self) -> str:
        axis = "" if self._quant_axis < 0 else f", quant_axis={self._quant_axis}"
        return f"bit_length={self._bit_length}{axis}"


class LinearQuanter(Scaled):
    """Floats to whole numbers, stored in one byte up to 8 bits.

    Paddle's gives them as floats.
    """

    def convert(self, x, scale, zero):
        return quantize(x, scale, zero, low=self._qmin, high=self._qmax)


class LinearDequanter(Scaled):
    """Whole numbers to floats."""

    def convert(self, x, scale, zero):
        return dequantize(x, scale, zero, high=self._qmax)


class LinearQuanterDequanter(Layer):
    """To whole numbers and back, where the two parts are not None."""

    def __init__(self, quanter: LinearQuanter | None, dequanter: LinearDequanter | None):
        super().__init__()
        self._quanter, self._dequanter = quanter, dequanter

    @staticmethod
    def from_quanter(quanter):
        """Both parts, with the scales that an observer or a quanter has found."""
        scales = parameters_of_quanter(quanter)
        return LinearQuanterDequanter(LinearQuanter(*scales), LinearDequanter(*scales))

    def forward(self, input):
        q = input if self._quanter is None else self._quanter(input)
        return q if self._dequanter is None else self._dequanter(q)

    def defer(self, input):
        """`forward` for a product: whole numbers; their floats are computed if it needs
        them; the floats themselves where scales are those of groups.
        """
        back = self._dequanter
        if back is None or back.in_groups:
            return self(input)
        q = input if self._quanter is None else self._quanter(input)
        return Quantized(q, *back.expand(q), back._qmax)


class ConvertibleQuantedLayer(Layer):
    """The base of layers in which quanters round weights and inputs, until `PTQ.convert` or
    `QAT.convert` leaves whole numbers there. Subclasses name both in the two methods below.
    """

    def __init__(self):
        super().__init__()
        self.converted = False

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """Pairs (name of a weight, name of its quanter)."""
        raise not_supported(f"{type(self).__name__} has no weights_to_quanters")

    def activation_quanters(self) -> list[str]:
        """The names of the quanters that inputs go through."""
        raise not_supported(f"{type(self).__name__} has no activation_quanters")

    def _convert(self, remain_weight: bool = False) -> None:
        if self.converted:
            raise value_error(f"{type(self).__name__} is converted already", "to convert it once")
        for weight, name in self.weights_to_quanters():
            pair = self._convert_quanter_to_qdq(name)
            if pair is not None and not remain_weight:
                rounded = pair._quanter(getattr(self, weight)).detach()
                delattr(self, weight)
                self.register_buffer(weight, rounded)
                pair._quanter = None
        for name in self.activation_quanters():
            self._convert_quanter_to_qdq(name)
        self.converted = True

    def _convert_quanter_to_qdq(self, name: str) -> LinearQuanterDequanter | None:
        quanter = getattr(self, name, None)
        if quanter is None:
            return None
        setattr(self, name, LinearQuanterDequanter.from_quanter(quanter))
        return getattr(self, name)
