"""Mixed precision: the interpreter in charge casts what an operator is given, then applies it.

Within `casting(policy)` the interpreter on top of the stack has another `apply`. Whatever it is
(eager, on pieces, a tracer), it stays what it is: a tracer writes the casts into its program, and
their derivatives follow from the tape. A derivative is not cast again: it computes in the dtypes of
its forward pass.
"""

from functools import wraps

from ..engine.core import dtype as dt
from ..engine.core.dispatch import current
from ..engine.core.slots import slot
from ..engine.eager.tensor import Tensor
from ..engine.ops.elementwise import cast

SINGLE = dt.float32.numpy
CASTABLE = dt.HALVES | {SINGLE}
"""The dtypes that mixed precision exchanges: doubles and whole numbers keep theirs."""


@slot("amp.computing_dtype")
def computing_dtype(kind: str, given: list, low, promote: bool):
    """The dtype in which an operator computes, given the dtypes of its inputs.

    A "white" operator computes in `low`, the dtype of few bits, a "black" one in float32. Any other
    computes in float32 if it should `promote` and has an input of float32, otherwise in `low`.
    """
    if kind == "white":
        return low
    return SINGLE if kind == "black" or (promote and SINGLE in given) else low


class CastPolicy:
    """In which dtype each operator computes.

    `lists` are pairs (kind, names of operators); the first that has a name of the operator
    counts: `names(op)` are all of an operator. One in no list is of the kind `rest`. `label` is how
    the policy prints.
    """

    def __init__(self, label: str, low, lists, names, *, promote: bool, rest: str = "other"):
        self.label, self.low, self.lists, self.names = label, low, lists, names
        self.promote, self.rest = promote, rest
        self.kinds: dict = {}  # of the operators that were met

    def __repr__(self) -> str:
        return self.label

    def kind(self, op) -> str | None:
        """Whether an operator is "white", "black", "other"; None: it is not cast."""
        if op not in self.kinds:
            names = self.names(op)
            listed = next((kind for kind, own in self.lists if not names.isdisjoint(own)), None)
            self.kinds[op] = None if op.effect else listed or (None if is_kept(op) else self.rest)
        return self.kinds[op]

    def govern(self, top) -> None:
        """Let an interpreter follow this policy."""
        top.policy, top.apply = self, Governed(top, self)


def is_kept(op) -> bool:
    """Whether an operator takes values as they are: it moves them, or has no derivative."""
    if op is cast or op.kind == "movement" or op.exact or op.view:
        return True
    return not (op.rules or op.pull)


class Governed:
    """The `apply` of an interpreter that follows a policy, or that is watched.

    In a reverse walk it casts only if it was put in charge there: to compute a part again.
    `watch(op, inputs, result)` is called after each operator.
    """

    def __init__(self, top, policy: CastPolicy | None, watch=None):
        self.top, self.policy, self.watch, self.walk = top, policy, watch, walk_of(top)

    def __call__(self, op, inputs, attrs):
        return self.plain(op, self.cast(op, inputs), attrs)

    def plain(self, op, inputs, attrs):
        """The operator applied to its inputs as they are."""
        y = type(self.top).apply(self.top, op, inputs, attrs)
        if self.watch is not None:
            self.watch(op, inputs, y)
        return y

    def cast(self, op, inputs):
        """The inputs of an operator in the dtype in which it computes."""
        policy = self.policy
        kind = None if policy is None else policy.kind(op)
        if kind is None or walk_of(self.top) != self.walk:
            return inputs
        dtypes = [x.spec.dtype for x in inputs if isinstance(x, Tensor)]
        dtype = computing_dtype(kind, dtypes, policy.low, policy.promote)
        return [self.cast_one(x, dtype) for x in inputs]

    def cast_one(self, x, dtype):
        """A tensor of one of the exchanged dtypes as `dtype`; anything else as it is."""
        if not isinstance(x, Tensor) or x.spec.dtype == dtype or x.spec.dtype not in CASTABLE:
            return x
        return self.plain(cast, (x,), {"dtype": dtype})


def walk_of(top) -> tuple:
    """The reverse walk that an interpreter is in: the record it passes, and the calls after it."""
    return id(top.passing), id(top.after_backward)


class governing:
    """A block in which the interpreter in charge has a policy, and is watched (None: neither)."""

    def __init__(self, policy: CastPolicy | None, watch=None):
        self.policy, self.watch = policy, watch

    def __enter__(self):
        top = find_interpreter()
        self.own = own = vars(top)
        self.before = {name: own.pop(name) for name in ("policy", "apply") if name in own}
        if self.policy is not None or self.watch is not None:
            own["policy"] = self.policy
            own["apply"] = Governed(top, self.policy, self.watch)

    def __exit__(self, *exc):
        self.own.pop("policy", None)
        self.own.pop("apply", None)
        self.own.update(self.before)


def casting(policy: CastPolicy | None) -> governing:
    """A block in which the interpreter in charge follows `policy`; None: it casts nothing."""
    return governing(policy, watcher())


def watching(watch) -> governing:
    """A block in which `watch(op, inputs, result)` is called after each operator."""
    return governing(current.top.policy, watch)


def watcher():
    """The watcher of the interpreter in charge, or None."""
    return getattr(governor(), "watch", None)


def governor() -> Governed | None:
    """The policy of the interpreter in charge."""
    return vars(find_interpreter()).get("apply")


def find_interpreter():
    """The interpreter that applies operators. One that only observes hands them on to it."""
    top = current.top
    while getattr(top, "hands_on_to", None) is not None:
        top = top.hands_on_to
    return top


class AsOperator:
    """A function as the policies see it: an operator without a record of its own."""

    kind, rules, pull, exact, view, effect = "opaque", True, None, False, False, False

    def __init__(self, name: str):
        self.name = name


AS_OPERATORS: set[str] = set()
"""The names of such functions."""


def as_operator(name: str, *, first: bool = False):
    """Decorator of a function that is one operator of Paddle's: mixed precision casts its tensors
    by that name, then it computes with what it got. `first`: it casts the first argument alone.
    """
    op = AsOperator(name)
    AS_OPERATORS.add(name)

    def decorate(function):
        @wraps(function)
        def call(*args, **kwargs):
            if current.top.policy is None:
                return function(*args, **kwargs)
            args, kwargs = cast_arguments(op, args, kwargs, first)
            with casting(None):
                return function(*args, **kwargs)

        return call

    return decorate


def cast_arguments(op, args, kwargs, first: bool) -> tuple:
    """The arguments of a function that counts as one operator, cast for it."""
    arguments = [*args, *kwargs.values()]
    count = 1 if first else len(arguments)
    arguments[:count] = governor().cast(op, arguments[:count])
    return arguments[: len(args)], dict(zip(kwargs, arguments[len(args) :], strict=True))
