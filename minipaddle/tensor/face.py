"""Faces: an operator as the public function Paddle users call, with Paddle's signature."""

import inspect

from ..core.axes import write_into
from ..core.prelude import current
from ..engine.core.op import Op

NAME = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)


def face(op: Op, name: str | None = None):
    """`op` as a function of its inputs, its attributes (by keyword or in order), and `name`."""
    places = [*op.inputs, *op.attrs, "name"]

    def call(*args, out=None, **kwargs):
        arguments = dict(zip(places, args, strict=False)) | kwargs
        if len(arguments) < len(args) + len(kwargs):
            raise TypeError(f"{op.name}() has too many arguments, or one twice; it takes {places}")
        arguments.pop("name", None)
        try:
            inputs = tuple([arguments.pop(x) for x in op.inputs])
        except KeyError as missing:
            raise TypeError(f"{op.name}() needs the argument {missing}") from None
        unknown = arguments.keys() - op.attrs.keys()
        if unknown:
            raise TypeError(f"{op.name}() takes no argument {unknown.pop()!r}; it takes {places}")
        return write_into(out, current.top.apply(op, inputs, op.defaults | arguments))

    def unary(x, name=None, *, out=None):
        y = current.top.apply(op, (x,), {})
        return y if out is None else write_into(out, y)

    def binary(x, y, name=None, *, out=None):
        z = current.top.apply(op, (x, y), {})
        return z if out is None else write_into(out, z)

    quick = {("x",): unary, ("x", "y"): binary}
    function = call if op.attrs else quick.get(tuple(op.inputs), call)
    function.__name__ = function.__qualname__ = name or op.name
    function.__doc__ = op.doc
    function.__signature__ = signature(op)
    function.op = op
    return function


def signature(op: Op) -> inspect.Signature:
    """Inputs, attributes with their defaults, then Paddle's `name`; `out` may be given too."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    inputs = [inspect.Parameter(x, kind) for x in op.inputs]
    attrs = [inspect.Parameter(k, kind, default=v) for k, v in op.attrs.items()]
    return inspect.Signature([*inputs, *attrs, NAME])
