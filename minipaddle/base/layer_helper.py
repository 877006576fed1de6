"""The helper with which Paddle's functions add an operator of C++. Source: Paddle
`paddle.base.layer_helper`.
"""

from ..core.missing import reason
from ..core.prelude import Tensor, not_supported

__all__ = ["LayerHelper"]


class LayerHelper:
    """The helper that functions make first and use in static mode alone, where it refuses.

    >>> helper = paddle.base.layer_helper.LayerHelper("scale", x=paddle.ones([2]))
    >>> helper.input_dtype("x")
    paddle.float32
    """

    def __init__(self, layer_type: str, **kwargs):
        self.layer_type, self.kwargs = layer_type, kwargs

    def input_dtype(self, input_param_name: str = "input"):
        """The dtype of the argument of that name; of a list of tensors, of the first."""
        inputs = self.kwargs[input_param_name]
        return (inputs if isinstance(inputs, Tensor) else inputs[0]).dtype

    def refuse(self, *args, **kwargs):
        """Raise NotImplementedError: an operator of C++ cannot be added by its name."""
        what = f"the operator {self.layer_type!r} was asked for by its name in C++"
        raise not_supported(
            f"{what}: {reason('paddle._C_ops.any')}", hint="call the function of paddle for it"
        )

    append_op = create_variable_for_type_inference = create_parameter = refuse
    create_global_variable = create_variable = append_activation = append_bias_op = refuse
