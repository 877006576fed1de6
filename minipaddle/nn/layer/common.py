"""Linear and bilinear maps, embeddings, dropout, flattening."""

from ...core.prelude import Recording, current, refuse_unsupported, value_error
from .. import functional as F
from ..initializer import Assign
from .functional import Functional
from .layers import Layer
from .tree import path_of


def require_positive(layer, **sizes) -> None:
    for name, size in sizes.items():
        if size <= 0:
            raise value_error(f"{type(layer).__name__} was given {name}={size}", "more than 0")


class Identity(Layer):
    """Passes its input through; takes any arguments.

    >>> paddle.nn.Identity()(paddle.ones([1])).tolist()
    [1.0]
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Layer):
    """x @ weight + bias: [..., in_features] to [..., out_features].

    `weight` has shape [in_features, out_features], drawn by `XavierUniform`; `bias` is zero, and
    None with `bias_attr=False`.

    >>> layer = paddle.nn.Linear(3, 4)
    >>> layer
    Linear(in_features=3, out_features=4, dtype=float32)
    >>> layer(paddle.ones([2, 3])).shape
    [2, 4]
    """

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__(dtype=None)
        require_positive(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features, self.name = in_features, out_features, name
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        if self.weight is None:
            raise value_error(
                "Linear was given weight_attr=False", hint="only bias_attr can be False"
            )

    def forward(self, input):
        return self.apply_linear(input, self.bias)

    def apply_linear(self, input, bias):
        """input @ weight + bias; an error names the layer."""
        try:
            return F.linear(input, self.weight, bias)
        except ValueError as error:
            if input.spec.shape[-1:] == (self.in_features,):
                raise
            raise value_error(
                f"{path_of(current.top.scope)} (a {type(self).__name__}) was given {input.spec}",
                f"a last dimension of in_features={self.in_features}",
            ) from error

    def extra_repr(self) -> str:
        name = f", name={self.name}" if self.name else ""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={self._dtype}{name}"
        )


class Bilinear(Layer):
    """y[b, o] = Σ x1[b, i] · weight[o, i, j] · x2[b, j] + bias[0, o].

    >>> paddle.nn.Bilinear(2, 3, 4)(paddle.ones([5, 2]), paddle.ones([5, 3])).shape
    [5, 4]
    """

    _shown = ("in1_features", "in2_features", "out_features", "_dtype")

    def __init__(
        self, in1_features, in2_features, out_features, weight_attr=None, bias_attr=None, name=None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        require_positive(
            self, in1_features=in1_features, in2_features=in2_features, out_features=out_features
        )
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        shape = [out_features, in1_features, in2_features]
        self.weight = self.create_parameter(shape, weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1, x2):
        return F.bilinear(x1, x2, self.weight, self.bias)


class Embedding(Layer):
    """A table of `num_embeddings` vectors of size `embedding_dim`, looked up by number.

    The row `padding_idx` is zero and gets no gradient; `_weight` gives the first values and
    `_freeze` keeps them. With `sparse` the gradient is kept as rows, and a step of SGD, Adagrad or
    Adam with `lazy_mode` changes these rows alone; `max_norm` and `scale_grad_by_freq` are refused.

    >>> table = paddle.nn.Embedding(10, 4, padding_idx=0)
    >>> table(paddle.to_tensor([[0, 3]])).shape
    [1, 2, 4]
    """

    def __init__(
        self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, *,
        scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None,
        dtype=None, weight_attr=None, name=None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        require_positive(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        refuse_unsupported("Embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise value_error(
                f"Embedding was given padding_idx={padding_idx}",
                f"a row of {num_embeddings}, or None",
            )
        self.num_embeddings, self.embedding_dim, self.sparse = num_embeddings, embedding_dim, sparse
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self._weight_attr, self._size = weight_attr, [num_embeddings, embedding_dim]
        shape, draw = [num_embeddings, embedding_dim], None if _weight is None else Assign(_weight)
        self.weight = self.create_parameter(shape, weight_attr, dtype, default_initializer=draw)
        self.weight.stop_gradient |= _freeze
        if padding_idx is not None:
            with Recording(False):
                self.weight[self.padding_idx] = 0.0
        self.to(device)

    def forward(self, x):
        return F.embedding(x, self.weight, self.padding_idx, sparse=self.sparse)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return (
            f"{self.num_embeddings}, {self.embedding_dim}{padding}, sparse={self.sparse}, "
            "scale_grad_by_freq=False"
        )


class Flatten(Layer):
    """The axes from `start_axis` to `stop_axis` as one.

    >>> paddle.nn.Flatten()(paddle.ones([2, 3, 4])).shape
    [2, 12]
    """

    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input):
        return input.flatten(self.start_axis, self.stop_axis)


class Unflatten(Layer):
    """One axis as several: the inverse of `Flatten`.

    >>> paddle.nn.Unflatten(1, [2, 3])(paddle.ones([4, 6])).shape
    [4, 2, 3]
    """

    _shown = ("axis", "shape")

    def __init__(self, axis, shape, name=None):
        super().__init__()
        self.axis, self.shape = axis, shape

    def forward(self, input):
        return input.unflatten(self.axis, self.shape)


class Dropout(Functional, function=F.dropout, fixed=("p", "inplace", "axis", "mode", "name")):
    _shown = ("p", "axis", "mode", "name", "inplace")


class Dropout2D(Functional, function=F.dropout2d): ...


class Dropout3D(Functional, function=F.dropout3d): ...


class AlphaDropout(Functional, function=F.alpha_dropout): ...


class FeatureAlphaDropout(Functional, function=F.feature_alpha_dropout): ...


__all__ = [
    "AlphaDropout", "Bilinear", "Dropout", "Dropout2D", "Dropout3D", "Embedding",
    "FeatureAlphaDropout", "Flatten", "Identity", "Linear", "Unflatten",
]  # fmt: skip
