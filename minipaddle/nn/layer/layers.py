"""`Layer`: parameters, buffers and sublayers with a `forward`."""

from collections import OrderedDict
from copy import deepcopy
from functools import cache
from inspect import signature
from itertools import count

from ...core.prelude import current, dt, not_supported, note_refusal, teach, type_error
from ...eager.layer_changes import Parts, changes, stores_of
from ...eager.numbers import Number
from ...engine.core.errors import caller
from ...engine.eager.tensor import Parameter, Tensor
from ..names import snake, unique
from ..param_attr import make_parameter
from .state import LayerState
from .tree import LayerWalks

__all__ = ["Layer"]

KINDS = ("_parameters", "_sub_layers", "_buffers")
"""Where a layer keeps its parts; an attribute is looked up in this order."""

NOT_BOOL = """layer.training is to be a tensor, which a condition of the program chooses
  expected: True or False
  try: call train() or eval() outside of the branch, or decide by a Python value"""


class HookHandle:
    """The handle of a registered hook: `remove()` unregisters it."""

    numbers = count()

    def __init__(self, hooks: OrderedDict, hook, *, prepend: bool = False, **options):
        if current.top.tracing:
            current.top.accept_hook()
        self.hooks, self.number = hooks, next(self.numbers)
        hooks[self.number] = (hook, options) if options else hook
        if prepend:
            hooks.move_to_end(self.number, last=False)

    def remove(self) -> None:
        self.hooks.pop(self.number, None)


class Layer(LayerWalks, LayerState):
    """The base of all layers and models: assign parts in `__init__`, compute in `forward`.

    A `Parameter`, `Layer` or registered buffer that is assigned to an attribute becomes a part, so
    that `parameters()`, `state_dict()`, `train()` and `to()` reach it. `name_scope` replaces the
    class name in `full_name()`.

    >>> class Twice(paddle.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = paddle.nn.Linear(2, 2)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> net = Twice()
    >>> net(paddle.ones([1, 2])).shape, len(net.parameters())
    ([1, 2], 2)
    """

    training = True

    def __init__(self, name_scope: str | None = None, dtype="float32"):
        if current.top.tracing and not current.top.by_hand:
            stores_of(current.top).of[id(self)] = self, []  # each run makes it anew
        self._full_name = unique(snake(type(self).__name__ if name_scope is None else name_scope))
        self._dtype = dt.public(dt.default() if dtype is None else dtype).name
        self._parameters: OrderedDict[str, Parameter | None] = Parts()
        self._sub_layers: OrderedDict[str, Layer | None] = Parts()
        self._buffers: OrderedDict[str, Tensor | None] = Parts()
        self._non_persistable_buffer_names_set: set[str] = set()
        self._forward_pre_hooks: OrderedDict = Parts()
        self._forward_post_hooks: OrderedDict = Parts()
        self._state_dict_hooks: OrderedDict = OrderedDict()

    # ---- calling -----------------------------------------------------------------------------

    def forward(self, *inputs, **kwargs):
        """Compute the outputs; every subclass defines it."""
        raise not_supported(
            f"{type(self).__name__} has no forward",
            hint=f"define `def forward(self, x): ...` in class {type(self).__name__}",
        )

    def __call__(self, *inputs, **kwargs):
        """Run the pre-hooks, `forward`, the post-hooks; records made meanwhile know this layer."""
        top = current.top
        outer = top.scope
        top.scope = outer, self, caller() if top.lines else None
        try:
            if self._forward_pre_hooks or self._forward_post_hooks:
                return self._call_with_hooks(inputs, kwargs)
            return self.forward(*inputs, **kwargs)
        finally:
            top.scope = outer

    def _call_with_hooks(self, inputs, kwargs):
        for hook, options in list(self._forward_pre_hooks.values()):
            if options["with_kwargs"]:
                inputs, kwargs = hook(self, inputs, kwargs) or (inputs, kwargs)
            else:
                changed = hook(self, inputs)
                inputs = inputs if changed is None else changed
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        finished = False
        try:
            outputs = self.forward(*inputs, **kwargs)
            finished = True
        finally:
            if not finished:
                for hook, options in list(self._forward_post_hooks.values()):
                    if options["always_call"]:
                        run_post_hook(hook, options, self, inputs, kwargs, None)
        for hook, options in list(self._forward_post_hooks.values()):
            outputs = run_post_hook(hook, options, self, inputs, kwargs, outputs)
        return outputs

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(layer, inputs)` before `forward`; a returned value replaces the inputs.

        With `with_kwargs` it is `hook(layer, inputs, kwargs)` and returns both or None.
        """
        return HookHandle(self._forward_pre_hooks, hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_post_hook(
        self, hook, *, prepend=False, with_kwargs=False, always_call=False
    ):
        """Call `hook(layer, inputs, outputs)` after `forward`; a returned value replaces the
        outputs.

        With `always_call` it runs (on None) even when `forward` raises.
        """
        options = {"prepend": prepend, "with_kwargs": with_kwargs, "always_call": always_call}
        return HookHandle(self._forward_post_hooks, hook, **options)

    register_forward_hook = register_forward_post_hook

    def register_state_dict_hook(self, hook):
        """Call `hook(state)` on the result of every `state_dict`."""
        return HookHandle(self._state_dict_hooks, hook)

    # ---- parts -------------------------------------------------------------------------------

    def create_parameter(
        self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None
    ) -> Parameter | None:
        """A new parameter as `attr` describes it; None when `attr` is False.

        Without any initializer a weight is drawn by `XavierUniform`, a bias is zero. It becomes a
        part when it is assigned to an attribute.
        """
        return make_parameter(shape, dtype, attr, is_bias, default_initializer, self._full_name)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register a parameter under a name."""
        self._register("_parameters", name, parameter, Parameter)
        return parameter

    register_parameter = add_parameter

    def add_sublayer(self, name: str, sublayer: "Layer | None") -> "Layer | None":
        """Register a layer under a name."""
        self._register("_sub_layers", str(name), sublayer, Layer)
        return sublayer

    add_module = add_sublayer

    def register_buffer(self, name: str, tensor, persistable: bool = True) -> None:
        """Register a tensor that is state but not learned; only persistable ones are saved."""
        self._register("_buffers", name, tensor, Tensor)
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)

    def _register(self, kind: str, name: str, part, wanted: type) -> None:
        part = current.top.resolve(part) if current.top.by_hand else part
        if kind not in self.__dict__:
            raise ValueError(not_initialised(self))
        what = f"{type(self).__name__} was given a {wanted.__name__.lower()} named {name!r}"
        if not isinstance(name, str):
            raise type_error(what, "a string")
        if not name or ("." in name and kind != "_sub_layers"):  # as in Paddle
            raise KeyError(
                teach(what, "a name that is not empty and has no '.': dots separate paths")
            )
        if part is not None and not isinstance(part, wanted):
            raise type_error(f"{what} that is of type {type(part).__name__}", wanted.__name__)
        taken = any(name in getattr(self, other) for other in KINDS if other != kind)
        if taken or (name not in getattr(self, kind) and hasattr(self, name)):
            raise KeyError(teach(f"{what}, but it has another attribute of this name"))
        getattr(self, kind)[name] = part

    # ---- attributes --------------------------------------------------------------------------

    def __getattr__(self, name: str):
        own = self.__dict__
        for kind in KINDS:
            parts = own.get(kind)
            if parts is not None and name in parts:
                return parts[name]
        public = public_name(self, name)
        if public is not None:
            return own[public]
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if "_sub_layers" not in own:
            message += f"\n{not_initialised(self)}"
        raise AttributeError(message, name=name, obj=self)  # Python adds the nearest name

    def __setattr__(self, name: str, value) -> None:
        if current.top.tracing and "_buffers" in self.__dict__:
            current.top.note_layer(self)
        for wanted, kind in PARTS:
            if isinstance(value, wanted):
                self._adopt(kind, name, value)
                return
        own = self.__dict__
        for kind in KINDS:
            parts = own.get(kind)
            if parts is not None and name in parts:
                self._replace(kind, name, value)
                return
        if isinstance(value, Tensor):
            if name == "training":
                raise note_refusal(TypeError(NOT_BOOL))
            if not isinstance(value, Number):
                self._adopt("_buffers", name, value)
                self._non_persistable_buffer_names_set.add(name)
                return
        name = public_name(self, name) or name
        if own.get(name, own) is not value:
            changes.note()
        object.__setattr__(self, name, value)

    def _adopt(self, kind: str, name: str, part) -> None:
        """A parameter, a layer or a tensor, a buffer that is not saved, was assigned: it leaves
        wherever the name stood before.
        """
        own = self.__dict__
        if kind not in own:
            raise ValueError(not_initialised(self))
        if name in own:
            del own[name]
            changes.note()
        self._non_persistable_buffer_names_set.discard(name)
        for other in KINDS:
            if other != kind and name in own[other]:
                del own[other][name]
        own[kind][name] = part

    def _replace(self, kind: str, name: str, value) -> None:
        """Something else was assigned to the name of a part: None, or for a buffer a tensor."""
        if value is not None and not (kind == "_buffers" and isinstance(value, Tensor)):
            raise type_error(
                f"assignment of {type(value).__name__} to {type(self).__name__}.{name}",
                f"{EXPECTED[kind]} or None: the name belongs to a {EXPECTED[kind]}",
                hint=f"layer.{name}.set_value(...) changes values; `del layer.{name}` frees "
                "the name",
            )
        self.__dict__[kind][name] = value

    def __delattr__(self, name: str) -> None:
        for kind in KINDS:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)
        changes.note()

    def __deepcopy__(self, memo):
        """A copy with new parameters, which get new names, as in Paddle."""
        copy = memo[id(self)] = object.__new__(type(self))
        copy.__dict__.update(deepcopy(self.__dict__, memo))
        for parameter in copy._parameters.values():
            if parameter is not None:
                parameter.name = unique(f"{parameter.name.partition('_deepcopy')[0]}_deepcopy")
        return copy

    def __dir__(self):
        return [*super().__dir__(), *(name for kind in KINDS for name in getattr(self, kind))]

    # ---- modes, and functions for all layers -------------------------------------------------

    def train(self, mode: bool = True):
        """Put this layer and all below into training mode."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self):
        """Put this layer and all below into evaluation mode."""
        return self.train(False)

    def apply(self, fn):
        """Call `fn(layer)` on every layer below and then on this one."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Set all gradients to zero, or forget them."""
        for parameter in self.parameters():
            parameter.clear_gradient(set_to_zero)

    # ---- names and text ----------------------------------------------------------------------

    def full_name(self) -> str:
        """The layer's own name, such as `linear_0`."""
        return self._full_name

    _shown: tuple = ()
    """The attributes that `repr` shows."""

    def extra_repr(self) -> str:
        """The text in the brackets of `repr`; subclasses may override it."""
        return ", ".join(f"{name.lstrip('_')}={getattr(self, name)}" for name in self._shown)

    def __repr__(self) -> str:
        head, extra = type(self).__name__, self.extra_repr()
        children = [f"({name}): {child!r}" for name, child in self._sub_layers.items()]
        if not children:
            return f"{head}({extra})"
        body = "\n".join(children).replace("\n", "\n  ")
        return f"{head}({extra}\n  {body}\n)"


@cache
def constructor_arguments(kind: type) -> frozenset[str]:
    """The arguments that the constructors of Paddle's own layers among a class's bases take."""
    own = [c for c in kind.__mro__ if issubclass(c, Layer) and c.__module__.startswith(PACKAGE)]
    return frozenset(name for c in own for name in signature(c).parameters)


def public_name(layer: Layer, name: str) -> str | None:
    """`output_size` for `_output_size`: Paddle keeps most arguments of a layer's constructor as
    private attributes, and programs read and change them. None where it is no such attribute.
    """
    public, own = name[1:], layer.__dict__
    if not name.startswith("_") or name in own or public not in own:
        return None
    return public if public in constructor_arguments(type(layer)) else None


PACKAGE = __name__.partition(".")[0] + "."
PARTS = ((Parameter, "_parameters"), (Layer, "_sub_layers"))
EXPECTED = {"_parameters": "Parameter", "_sub_layers": "Layer", "_buffers": "Tensor"}


def run_post_hook(hook, options, layer, inputs, kwargs, outputs):
    """The outputs as `hook` leaves them."""
    arguments = (inputs, kwargs) if options["with_kwargs"] else (inputs,)
    changed = hook(layer, *arguments, outputs)
    return outputs if changed is None else changed


def not_initialised(layer) -> str:
    name = type(layer).__name__
    return teach(
        f"{name} was given a part before super().__init__() was called",
        hint=f"make super().__init__() the first line of {name}.__init__",
    )
