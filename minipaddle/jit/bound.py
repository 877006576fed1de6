"""The call stub of a compiled program: the fast path of calls that are like its first one.

On its way through `StaticFunction`, `Captured` and `Executable` a call checks a hundred small
things in loops; for a small program that takes longer than computing. So once a program is
compiled, its checks are written out as one Python function, as a reader would write it by hand: the
checks, one call of C with one table of pointers, the marks that memory was written. (Loops over
prepared lists take a third longer.) If a check fails, the stub returns `CACHE_MISS` before it has
done anything, and the call takes the slow path. For a function of one tensor and one weight:

    def call(args):
        nonlocal array0, array1, out0
        if settings() != SETTINGS or place.box[0] is not CPU: return CACHE_MISS
        if type(args) is not tuple or len(args) != 1: return CACHE_MISS
        args_0, = args
        …
        if args_0.array is not array0: …        # of another batch: the table gets its address
        if refs(out0) > 2 or …: …               # somebody holds the last result: a new one
        if run(table): return CACHE_MISS
        mark(keys)
        return wrap(out0)
"""

from __future__ import annotations

import linecache
from sys import getrefcount
from textwrap import indent

from ..engine.core import record
from ..engine.core.slots import PLUGGED
from ..engine.eager.device import CPU, chosen, current_place
from ..engine.eager.storage import Gradient, TensorStorage
from ..engine.eager.tensor import Parameter, Tensor, wrap
from ..engine.executors.native import Executable
from ..engine.jit.cache import settings
from ..engine.jit.capture import HOLDS
from ..engine.jit.to_static import CACHE_MISS, CALL_STUBS
from ..engine.jit.tree import alone

SMALL = 1 << 16
"""Bytes of a result that is used again if by the next call nobody holds it."""

CONSTANTS = {int, float, bool, str, type(None)}
"""Types of arguments that are compared by identity; another object is a miss."""


def count_one_reference() -> int:
    """What `getrefcount` gives for an object that only a call stub holds, on this Python."""
    held = object()

    def count():
        nonlocal held
        return getrefcount(held)

    return count()


FREE = count_one_reference()
"""An output with no more references may be written again."""


class NoStub(Exception):
    """Calls with such arguments must take the slow path."""


def bound(captured, args) -> list:
    """A stub for calls of a captured function with arguments like these, in a list; nothing if
    they must take the slow path. Its calls count as hits of the cache.
    """
    made = captured.executables.compiled.get((captured.program, CPU.name, None))
    if type(made) is not Executable or not made.quick or PLUGGED:
        return []
    if captured.writes or captured.copied or captured.same or current_place() is not CPU:
        return []
    try:
        return [StubWriter(captured, made).create(args)]
    except NoStub:
        return []


class StubWriter:
    """Writes the stub: `names` are the objects it uses, `text` are its lines."""

    def __init__(self, captured, made: Executable):
        self.captured, self.made, self.context = captured, made, made.context()
        self.names: dict[str, object] = {
            "CACHE_MISS": CACHE_MISS, "settings": settings, "SETTINGS": settings(), "place": chosen,
            "CPU": CPU, "outer": captured.outer, "idle": [True], "keys": [], "hits": captured.hits,
            "bind": self.context.bind, "run": made.run, "table": self.context.all,
            "refs": getrefcount, "written": record._written, "new": self.context.result,
            "mark": record.mark_keys, "key_of": record.key_of, "wrap": wrap,
            "stale": made.weights.stale, "restore": captured.restore, "tape": captured.put_on_tape,
        }  # fmt: skip
        self.text: list[str] = []
        self.inputs: list[str] = []  # the tensors among the arguments
        self.remembered: list[str] = []  # what it remembers from call to call

    def name(self, prefix: str, value) -> str:
        """A name for an object."""
        name = f"{prefix}_{len(self.names)}"
        self.names[name] = value
        return name

    def of(self, owner, attribute: str) -> str:
        """An attribute, out of the object's own dict: what has a `__getattr__` is slow to ask."""
        own = vars(owner)
        if attribute in own:
            return f"{self.name('own', own)}[{attribute!r}]"
        return f"{self.name('object', owner)}.{attribute}"

    def miss_if(self, condition: str) -> None:
        self.text.append(f"if {condition}: return CACHE_MISS")

    def create(self, args):
        """The function itself."""
        self.miss_if("settings() != SETTINGS or place.box[0] is not CPU")
        self.unpack("args", args)
        self.surroundings()
        if self.made.weights.sources:
            self.miss_if("stale()")
        before, self.text = self.text, []
        self.arrays()
        self.results()
        self.text.append("if run(table): return CACHE_MISS")
        self.effects()
        inside = ["try:", indent("\n".join(self.text), "    "), "finally:"]
        taken = ["try: idle.pop()", "except IndexError: return CACHE_MISS"]
        lines = [*before, *taken, *inside, "    idle.append(True)"]
        return compiled(self.captured.program.name, self.names, self.remembered, lines)

    # ---- the checks --------------------------------------------------------------------------

    def unpack(self, name: str, value) -> None:
        """Check that an argument is like this one, and give names to what it holds."""
        kind = type(value)
        if kind not in (list, tuple):
            return self.leaf(name, value)
        self.miss_if(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}")
        inside = [f"{name}_{k}" for k in range(len(value))]
        if inside:
            self.text.append(f"{', '.join(inside)}, = {name}")
        for each in zip(inside, value, strict=True):
            self.unpack(*each)

    def leaf(self, name: str, value) -> None:
        if type(value) in CONSTANTS:
            return self.miss_if(f"{name} is not {self.name('constant', value)}")
        if type(value) not in (Tensor, Parameter) or id(value) in self.captured.outer:
            raise NoStub
        kind = self.name("kind", type(value))
        self.inputs.append(name)
        self.miss_if(
            f"type({name}) is not {kind} or {name}.stop_gradient is not {value.stop_gradient}"
        )
        self.miss_if(f"id({name}) in outer")

    def surroundings(self) -> None:
        """The checks of `Captured.fits`."""
        captured, cleared = self.captured, self.cleared
        checks = [f"{self.of(x, 'training')} is {on}" for x, on in captured.layers]
        conditions = {(id(x), condition): x for x, condition in captured.conditions}
        for x in cleared.values():  # "zeros" and "none" are as good as "waiting"
            conditions.pop((id(x), "waiting"), None)
        checks += [self.waits(x, condition) for (_, condition), x in conditions.items()]
        checks += [self.waits(x, condition) for (_, condition), x in cleared.items()]
        checks += [f"{self.name('was', was)}.holds()" for was in captured.taken]
        if checks:
            self.miss_if(f"not ({' and '.join(checks)})")

    def waits(self, x: Tensor, condition: str) -> str:
        where = {"grad": "_grad", "stale": "_stale", "stop": "stop_gradient"}
        values = {k: self.of(x, v) for k, v in where.items() if f"{{{k}}}" in HOLDS[condition]}
        return f"({HOLDS[condition].format(**values)})"

    @property
    def cleared(self) -> dict:
        """The tensors whose gradient a run only clears, where that is so already."""
        found = {}
        for each in self.captured.after:
            if type(each) is Gradient and not each.outputs:
                found[id(each.tensor), "zeros" if each.cleared else "none"] = each.tensor
        return found

    # ---- memory ------------------------------------------------------------------------------

    def arrays(self) -> None:
        """Let the table point to what the tensors hold; most hold what they held before."""
        first, keys = len(self.inputs), self.names["keys"]
        for k, cell in enumerate(self.captured.states, first):
            own = type(cell) is TensorStorage
            source = self.of(cell.tensor, "array") if own else f"{self.name('cell', cell)}.read()"
            self.array(k, source)
            if own and cell in self.captured.updates:
                self.text.append(f"    keys[{len(keys)}] = key_of(array)")
                keys.append(None)
        for k, name in enumerate(self.inputs):
            self.array(k, f"{name}.array")

    def array(self, k: int, source: str) -> None:
        """Bind input or state `k` if it is another array than at the last call."""
        self.remembered.append(f"array{k}")
        self.names[f"array{k}"] = None
        self.text += [
            f"if (array := {source}) is not array{k}:",
            f"    if not bind({k}, array): return CACHE_MISS",
            f"    array{k} = array",
        ]

    def results(self) -> None:
        """Memory for the outputs: that of the last call, if nobody holds it any more."""
        for k, output in enumerate(self.captured.program.outputs):
            if output.spec.nbytes > SMALL:
                self.text.append(f"out{k} = new({k})")
                continue
            self.remembered.append(f"out{k}")
            self.names[f"out{k}"] = self.context.result(k)
            self.text.append(
                f"if refs(out{k}) > {FREE} or id(out{k}) in written: out{k} = new({k})"
            )

    # ---- afterwards --------------------------------------------------------------------------

    def effects(self) -> None:
        """The side effects of a run, as in `Captured.__call__`."""
        captured = self.captured
        if self.names["keys"]:
            self.text.append("mark(keys)")
        inputs = f"[{', '.join(self.inputs)}]"
        first = len(self.inputs)
        for k, cell in enumerate(captured.states):
            if cell in captured.updates and type(cell) is not TensorStorage:
                self.text.append(f"{self.name('cell', cell)}.write(array{first + k})")
        for each in captured.after:
            if type(each) is Gradient and not each.outputs:
                continue  # a check says that it is so already
            leave = f"{self.name('after', each)}.leave("
            made = "".join(f", out{j}" for j in each.outputs)
            self.text.append(f"{leave}{inputs}{made})")
        made = ["None" if k is None else f"wrap(out{k})" for k in captured.places]
        recorded = captured.backward is not None and self.names["SETTINGS"][0]
        self.text.append("hits[0] += 1")
        if captured.restore is alone and not recorded:
            self.text.append(f"return {made[0]}")
            return
        self.text.append(f"results = [{', '.join(made)}]")
        if recorded:
            outs = range(captured.residuals, len(captured.program.outputs))
            kept = ", ".join(f"out{k}" for k in outs)
            self.text.append(f"tape({inputs}, results, [{kept}], {{}})")
        self.text.append("return restore(results, {})")


def compiled(name: str, names: dict, remembered: list[str], lines: list[str]):
    """The function of these lines; a traceback shows them."""
    body = [f"nonlocal {', '.join(remembered)}"] * bool(remembered) + lines
    text = ["def call(args):", indent("\n".join(body), "    "), "return call"]
    source, space = f"def make({', '.join(names)}):\n{indent(chr(10).join(text), '    ')}\n", {}
    file = f"<the call stub of {name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), space)
    return space["make"](**names)


CALL_STUBS.append(bound)
