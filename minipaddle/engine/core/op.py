"""Operators. An `Op` is a name and its rules; its kind supplies the rules that are not written.

| kind        | written once                                 | follows                           |
|-------------|----------------------------------------------|-----------------------------------|
| elementwise | a scalar formula `f(m, x, y)`                | shape and dtype rule, fusion, C   |
| movement    | a body and a map output index -> input index | fusion into any loop nest         |
| reduction   | identity and combine                         | shape rule, row fusion            |
| contraction | letters, as in `einsum`: "mk,kn->mn"         | shape rule, derivatives, products |
| opaque      | a body and a shape rule                      |                                   |

`m` is the array module: numpy, cupy, or a namespace that builds C or CUDA text.
"""

from __future__ import annotations

import inspect
from functools import partial

from . import dtype as dt
from .dispatch import OUT, current, describe
from .errors import teach
from .record import Spec
from .slots import OPS
from .spec import broadcast_shapes, promote

SCALARS = (bool, int, float)

NOTHING = ((), False, ())
"""The entry of `Op.saves` for an operator like `add`, whose derivative needs no values."""
EVERYTHING = ("everything",)
"""The entry for an operator whose derivative needs all inputs and results."""


class Rule:
    """The derivative of an operator for one input: output cotangent -> input cotangent.

    A rule *names* what it needs, and only that is saved for the backward: the cotangent first
    (any name), then `out` for the result, an input's name for its value, `<input>_spec` for its
    shape and dtype alone, an attribute's name, or for a variadic operator `k`, the place of the
    input, and `specs`, the specs of the inputs up to and including that one. `**attrs` are all
    attributes that it does not name.
    """

    large = None  # a function to call instead, which may compute large arrays otherwise

    def __init__(self, op: Op, fn):
        self.fn = fn
        _, *parameters = inspect.signature(fn).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
        rest = op.attrs if len(names) < len(parameters) else ()
        self.rest = [name for name in rest if name not in names]
        self.plan = [(name, *self.source(op, name)) for name in names]
        self.values = {k for _, kind, k in self.plan if kind == "value"}
        self.specs = {k for _, kind, k in self.plan if kind == "spec"}
        self.all_specs = "specs" in names
        self.floats = op.result == "float"  # whole numbers were computed with as floats

    @staticmethod
    def source(op: Op, name: str) -> tuple[str, object]:
        base = name.removesuffix("_spec")
        if name == "out" and name in op.attrs:
            raise TypeError(f"{op.name} has an attribute 'out', which a rule cannot ask for")
        if name == "out":
            return "value", OUT
        if name in op.inputs:
            return "value", op.inputs.index(name)
        if name != base and base in op.inputs:
            return "spec", op.inputs.index(base)
        if name in op.attrs:
            return "attr", name
        if name in ("k", "specs"):
            return name, None
        raise TypeError(
            f"the derivative rule of {op.name} asks for {name!r}; it may ask for out, "
            + ", ".join([*op.inputs, *(f"{i}_spec" for i in op.inputs), *op.attrs])
        )

    def __call__(self, record, g, place: int):
        """The cotangent of input `place` of `record`, given the cotangent of its result."""
        args, attrs = [], record.attrs
        for _, kind, k in self.plan:
            if kind == "value":
                x = current.top.read(record, place if record.op.variadic and k != OUT else k)
                args.append(as_floats(x, g) if self.floats else x)
            elif kind == "attr":
                args.append(attrs[k])
            elif kind == "spec":
                args.append(spec_of(record, place if record.op.variadic else k))
            elif kind == "k":
                args.append(place)
            else:
                args.append([spec_of(record, j) for j in range(place + 1)])
        rest = {name: attrs[name] for name in self.rest} if self.rest else {}
        return (self.large or self.fn)(g, *args, **rest)


def as_floats(x, g):
    """Whole numbers in the dtype of the cotangent g, the dtype of the computation."""
    integral = hasattr(x, "spec") and x.spec.dtype.kind in "biu"
    return x.astype(g.spec.dtype) if integral else x


def spec_of(record, k: int) -> Spec:
    """The spec of input `k` of a record."""
    edge = record.inputs[k]
    return edge.spec if edge is not None else record.saved["spec", k]


class Saves(dict):
    """The values that a record must save for a backward into some inputs, computed on demand.

    The key is the set of those inputs, one bit each. The value is (inputs to save, whether to save
    the result, inputs whose spec is enough), or empty if none of them has a derivative.
    """

    def __init__(self, op: Op):
        self.op = op

    def __missing__(self, mask: int) -> tuple:
        op, values, specs = self.op, set(), set()
        rules = {k: op.rule(k) for k in range(mask.bit_length()) if mask >> k & 1}
        rules = {k: rule for k, rule in rules.items() if rule is not None}
        for k, rule in rules.items():
            values |= {v if v == OUT or not op.variadic else k for v in rule.values}
            specs |= set(range(k)) if rule.all_specs else set()
            specs |= set() if op.variadic else rule.specs
        unknown = {k for k in specs if not mask >> k & 1}  # an edge knows its spec itself
        saved = tuple(sorted(values - {OUT})), OUT in values, tuple(sorted(unknown))
        if not rules:
            saved = EVERYTHING if op.saves_all else ()
        self[mask] = saved = NOTHING if saved == NOTHING else saved  # once: other threads read it
        return saved


class Op:
    """A name, a body and rules. Calling it hands it to the interpreter on top of the stack."""

    kind = "opaque"
    direct = True  # whether the body may be called without `evaluate` on equal float dtypes
    pull = None
    """`pull(record, g, useful)` yields pairs (input record, cotangent), where the derivatives of
    all inputs at once; it replaces the rules."""
    saves_all = False  # whether its derivative needs all inputs and results
    effect = False  # whether it has a side effect
    view = False  # whether the result shares the memory of the first input
    alias = None  # record -> whether a memory plan may let its result lie where its input does
    by_rows = False  # whether its kernel hands complete rows to the operators that follow
    composite = False  # whether its body is written in operators, into which fusion decomposes it
    integral = False  # whether NumPy's whole numbers go through its body as those of operators do
    parts = element = None  # see `joins` and `makes`
    exact = False  # whether each value of the result is a value of an input, not rounded
    compares = False  # whether the result depends on two inputs holding the same bits
    large = None  # in eager mode: arrays, attributes -> the result, or None: the body computes it
    least = 1 << 14  # fewest elements of the first input, if NumPy has it, to ask `large`
    letters = None  # the sharding rule `(*specs, **attrs)`, see `sharding/letters.py`
    linear = ()  # sets of inputs (names) in which it is linear together
    on_sizes = None  # the body on arrays of symbolic sizes, if there is one

    def __init__(self, body, *, promote=(), result=None):
        self.name, self.body = body.__name__.rstrip("_"), body
        self.doc = inspect.getdoc(body) or ""
        parameters = list(inspect.signature(body).parameters.values())[1:]
        self.inputs = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.attrs = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self.defaults = {k: v for k, v in self.attrs.items() if v is not inspect.Parameter.empty}
        self.promoted = self.inputs if promote is True else promote
        self.result = result
        self.rules: dict[int, Rule] = {}
        self.saves = Saves(self)
        self.__doc__, self.__name__ = self.doc, self.name
        OPS[self.name] = self

    def __call__(self, *inputs, **attrs):
        return current.top.apply(self, inputs, self.defaults | attrs if self.defaults else attrs)

    def __repr__(self) -> str:
        return f"<{self.kind} operator {self.name}>"

    # ---- rules -------------------------------------------------------------------------------

    def vjp(self, rule=None, /, **rules):
        """Set derivative rules: `op.vjp(lambda g, out: ...)` for an operator of one input,
        `op.vjp(x=..., y=...)` for one of several, `@op.vjp` and `@op.vjp("x")` as decorators.
        """
        if isinstance(rule, str):
            return lambda function: self.set_rule(self.inputs.index(rule), function)
        if rule is not None:
            return self.set_rule(0, rule)
        for name, function in rules.items():
            self.set_rule(self.inputs.index(name), function)
        return None

    def set_rule(self, k: int, rule):
        """Make `rule` the derivative for input `k`; None removes it."""
        if rule is None:
            self.rules.pop(k, None)
        else:
            self.rules[k] = rule if isinstance(rule, Rule) else Rule(self, rule)
        self.saves.clear()
        return rule

    def rule(self, k: int) -> Rule | None:
        return self.rules.get(0 if self.variadic else k)

    def infer(self, *specs, **attrs) -> Spec:
        """The spec of the result from the specs of the inputs. `@op.shape` sets it."""
        raise NotImplementedError(f"{self.name} has no shape rule")

    def shape(self, rule):
        """Decorator: the shape rule `(*specs, **attrs) -> Spec`."""
        self.infer = rule
        return rule

    def joins(self, rule):
        """Decorator: the map `(i, *xs, **attrs) -> (fill, parts)` where inputs, or a number, meet.

        A part (k, j, ranges) is input k at index j, where all (index, low, high) of ranges hold;
        of parts that meet the last is taken. None: these attributes have no such map.
        """
        self.parts = rule
        return rule

    def makes(self, rule):
        """Decorator: the formula `(i, **attrs)` for element i of an operator without inputs."""
        self.element = rule
        return rule

    def shards(self, rule=None, /, linear="", multilinear=""):
        """Set the sharding rule. The operator is linear in the inputs `linear` ("x,y") together,
        and in each of the inputs `multilinear` alone.
        """
        together, alone = linear.split(","), multilinear.split(",")
        self.letters = rule
        self.linear = (tuple(together),) * bool(linear) + tuple((x,) for x in alone if x)
        return rule

    # ---- values ------------------------------------------------------------------------------

    def evaluate(self, m, arrays, attrs):
        """The result as an array, for arrays (or Python scalars) of the module `m`.

        Half precision is stored, not computed with: it is widened to float32 and rounded once, to
        the dtype that the shape rule says.
        """
        if self.promoted and len(arrays) > 1:
            arrays = self._promote(arrays)
        for a in arrays:  # `any` takes twice as long
            if getattr(a, "itemsize", 0) == 2 and a.dtype in dt.HALVES:
                return self.evaluate_halves(m, arrays, attrs)
        return self.body(m, *arrays, **attrs)

    def evaluate_halves(self, m, arrays, attrs):
        """`evaluate` for arrays; at least one has half precision."""
        y = self.body(m, *map(widen, arrays), **attrs)
        specs = [Spec(a.shape, a.dtype) if hasattr(a, "shape") else a for a in arrays]
        spec = self.infer(*specs, **attrs)
        if isinstance(y, tuple):
            return tuple(part.astype(s.dtype, copy=False) for part, s in zip(y, spec))
        return y.astype(spec.dtype, copy=False)

    def _promote(self, arrays):
        places = range(len(arrays)) if self.variadic else map(self.inputs.index, self.promoted)
        places = [k for k in places if k < len(arrays)]
        dtype = promote(self.name, [arrays[k] for k in places])
        return [
            a.astype(dtype) if k in places and getattr(a, "dtype", dtype) != dtype else a
            for k, a in enumerate(arrays)
        ]

    def result_spec(self, specs, attrs) -> Spec:
        """The result of `infer` after the promoted inputs got their common dtype."""
        several = self.promoted and self.kind != "elementwise" and len(specs) > 1
        if several and len({s.dtype for s in specs}) > 1:
            specs = [Spec(a.shape, a.dtype) for a in self._promote(list(specs))]
        return self.infer(*specs, **attrs)

    def explain(self, error: Exception, inputs, attrs) -> Exception:
        """The same error with a message that names this operator and its arguments."""
        operands = ", ".join([*map(describe, inputs), *(f"{k}={v!r}" for k, v in attrs.items())])
        try:
            self.result_spec([getattr(x, "spec", x) for x in inputs], attrs)
        except Exception as taught:
            error = error if isinstance(taught, NotImplementedError) else taught
        kind = next((k for k in KEPT if isinstance(error, k)), ValueError)
        return kind(teach(f"{self.name}({operands}): {error}"))


KEPT: list[type[Exception]] = [TypeError, IndexError]
"""Errors that stay of their kind when an operator explains them; others become ValueErrors."""


def widen(a):
    return a.astype("float32") if getattr(a, "dtype", None) in dt.HALVES else a


def names(n: int) -> str:
    """Letters for n axes.

    >>> from minipaddle.engine.core.op import names
    >>> names(3)
    'ABC'
    """
    return "".join(chr(ord("A") + k) for k in range(n))


class Elementwise(Op):
    """One scalar formula; broadcasting, dtypes, and the sum over broadcast axes come with it."""

    kind = "elementwise"

    def __init__(self, body, *, result=None, free=()):
        super().__init__(body, result=result)
        self.promoted = [x for x in self.inputs if x not in free]
        self.free = [self.inputs.index(x) for x in free]
        self.direct = not callable(result)

    def dtypes(self, inputs, attrs) -> tuple:
        """(dtype computed in, dtype of the result) for arrays, specs or Python scalars."""
        typed = [x for k, x in enumerate(inputs) if k not in self.free]
        dtype = promote(self.name, typed)
        if self.result == "float" and dtype not in dt.FLOATS:
            dtype = dt.float32.numpy
        if self.result == "bool":
            return dtype, dt.bool_.numpy
        return dtype, self.result(dtype, attrs) if callable(self.result) else dtype

    def evaluate(self, m, arrays, attrs):
        dtype, result = self.dtypes(arrays, attrs)
        inner = dt.float32.numpy if dtype in dt.HALVES else dtype
        cast = [a if k in self.free else m.asarray(a, dtype=inner) for k, a in enumerate(arrays)]
        y = m.asarray(self.body(m, *cast, **attrs))
        return y if y.dtype == result else y.astype(result)

    def infer(self, *specs, **attrs) -> Spec:
        shapes = [s.shape for s in specs if isinstance(s, Spec)]
        return Spec(broadcast_shapes(*shapes), self.dtypes(specs, attrs)[1])


class Movement(Op):
    """Elements change place, never value: any dtype passes through."""

    kind = "movement"
    source = None

    def evaluate(self, m, arrays, attrs):
        arrays = self._promote(arrays) if self.promoted and len(arrays) > 1 else arrays
        return self.body(m, *arrays, **attrs)

    def index(self, rule):
        """Decorator: the map `(i, x, **attrs) -> index into x` for an output index `i`."""
        self.source, self.view = rule, True
        return rule


def spec_of_reduction(x, *, axis, keepdim) -> Spec:
    """The spec of `x` with `axis` reduced."""
    kept = [1 if d in axis else n for d, n in enumerate(x.shape) if keepdim or d not in axis]
    return Spec(tuple(kept), x.dtype)


class Reduction(Op):
    """`axis` (a sorted tuple) is reduced with `combine`, starting from `identity`.

    `combine` joins two partial results, in any order. `term` is the elementwise operator that
    makes a partial result of one element (None: the element itself). `blocked`: a long row of
    floats is reduced in blocks, whose results are added in double.
    """

    kind = "reduction"

    def __init__(self, body, *, identity, combine, term=None, blocked=False, result=None):
        super().__init__(body, result=result)
        self.identity, self.combine = identity, combine
        self.term, self.blocked = term, blocked

    def infer(self, x, *, axis, keepdim) -> Spec:
        spec = spec_of_reduction(x, axis=axis, keepdim=keepdim)
        return spec.astype(self.result(x.dtype)) if self.result else spec

    def evaluate(self, m, arrays, attrs):
        y = super().evaluate(m, arrays, attrs)
        if self.result is None:
            return y
        dtype = self.result(arrays[0].dtype)
        return y if y.dtype == dtype else y.astype(dtype)


def _decorator(kind):
    def decorate(body=None, **options):
        return partial(kind, **options) if body is None else kind(body, **options)

    decorate.__doc__ = kind.__doc__
    return decorate


elementwise = _decorator(Elementwise)
movement = _decorator(Movement)
reduction = _decorator(Reduction)
opaque = _decorator(Op)
