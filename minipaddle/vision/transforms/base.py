"""The base of all transforms, and their composition.

Source: Paddle API `paddle.vision.transforms`.
"""

from ...engine.core.errors import not_supported, value_error

__all__ = ["BaseTransform", "Compose"]


class Compose:
    """One transform after the other.

    >>> import numpy
    >>> T = paddle.vision.transforms
    >>> T.Compose([T.CenterCrop(2), T.ToTensor()])(numpy.ones([4, 4, 3])).shape
    [3, 2, 2]
    """

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, data):
        for transform in self.transforms:
            try:
                data = transform(data)
            except Exception as error:
                error.add_note(f"in the transform {transform!r}")
                raise
        return data

    def __repr__(self) -> str:
        return "\n".join(["Compose(", *(f"    {t!r}" for t in self.transforms), ")"])


class BaseTransform:
    """The base: a subclass says in `_apply_image(img)` what happens to a picture.

    Called with a tuple, a transform passes item k to `_apply_<keys[k]>`, and items beyond `keys`
    are returned unchanged; `keys` is ("image",) if absent. `_get_params(inputs)` is called once for
    all of them; its result is `self.params`.

    >>> import numpy
    >>> class Negative(paddle.vision.transforms.BaseTransform):
    ...     def _apply_image(self, img):
    ...         return 1 - img
    >>> Negative()((numpy.array([[0.25]]), "a label"))
    (array([[0.75]]), 'a label')
    """

    def __init__(self, keys=None):
        if keys is not None and not isinstance(keys, list | tuple):
            raise value_error(f"keys={keys!r}", "a list or tuple of names")
        self.keys = ("image",) if keys is None else tuple(keys)
        self.params = None

    def _get_params(self, inputs):
        """The random parameters of one call."""

    def _apply_image(self, img):
        raise NotImplementedError(f"{type(self).__name__} defines no _apply_image(img)")

    def __call__(self, inputs):
        many = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(many)
        done = [self._apply(key, item) for key, item in zip(self.keys, many, strict=False)]
        done += many[len(self.keys) :]
        return tuple(done) if len(done) > 1 else done[0]

    def _apply(self, key: str, item):
        apply = getattr(self, f"_apply_{key}", None)
        if apply is None:
            name = type(self).__name__
            raise not_supported(
                f"{name} does not say what becomes of {key!r}",
                hint=f"define _apply_{key}(self, {key}) in a subclass of {name}",
            )
        return apply(item)

    def __repr__(self) -> str:
        own = (
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if name not in ("keys", "params") and not name.startswith("_")
        )
        return f"{type(self).__name__}({', '.join(own)})"
