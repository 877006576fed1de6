"""A call bound to what it found: after a few calls, one Python function does what they all did.

On its way through `StaticFunction`, `Captured` and `Executable` a call asks a hundred small
questions in loops; for a small program that takes longer than computing. So for one captured
function the road is written out as a reader would write it by hand: the questions, one call of C
with one table of pointers, the marks that memory was written. What does not hold sends a call
along the ordinary road, before anything was done. For a function of one tensor and one weight:

    def call(args):
        nonlocal array0, array1, out0
        if settings() != SETTINGS or place.box[0] is not CPU: return MISSED
        if type(args) is not tuple or len(args) != 1: return MISSED
        args_0, = args
        …
        if args_0.array is not array0: …        # of another batch: the table gets its address
        if refs(out0) > 2 or …: …               # somebody holds the last result: a new one
        if run(table): return MISSED
        mark(keys)
        return wrap(out0)
"""

from __future__ import annotations

import linecache
from sys import getrefcount

from ..engine.core import record, slots
from ..engine.eager.cells import Gradient, TensorCell
from ..engine.eager.device import CPU, chosen, current_place
from ..engine.eager.tensor import Parameter, Tensor, wrap
from ..engine.executors.native import Executable
from ..engine.jit.cache import settings
from ..engine.jit.capture import HOLDS
from ..engine.jit.to_static import CALL_STUBS, MISSED
from ..engine.jit.tree import alone

SMALL = 1 << 16
"""Bytes of a result that is used again if by the next call nobody holds it."""

CONSTANTS = {int, float, bool, str, type(None)}
"""Types of arguments that are told by their identity; another object is asked about elsewhere."""


class NotBound(Exception):
    """The call must go the ordinary road."""


def bound(captured, args, entries) -> list:
    """A function of `args` for calls of a captured function like this one, in a list; nothing if
    they must go the ordinary road. Its calls are counted in its entry of the cache.
    """
    made = captured.choice.made.get((captured.program, CPU.name, None))
    if type(made) is not Executable or not made.quick or slots.yours():
        return []
    if captured.writes or captured.copied or captured.same or current_place() is not CPU:
        return []
    hits = next((each.hits for each in entries if each.captured is captured), [0])
    try:
        return [Writing(captured, made, hits).written(args)]
    except NotBound:
        return []


class Writing:
    """Writes the function: `names` are what it knows, `text` are its lines."""

    def __init__(self, captured, made: Executable, hits: list):
        self.captured, self.made, self.context = captured, made, made.context()
        self.names: dict[str, object] = {
            "MISSED": MISSED, "settings": settings, "SETTINGS": settings(), "place": chosen,
            "CPU": CPU, "outer": captured.outer, "idle": [True], "keys": [], "hits": hits,
            "bind": self.context.bind, "run": made.run, "table": self.context.all,
            "refs": getrefcount, "written": record._written, "new": self.context.result,
            "mark": record.mark_keys, "key_of": record.key_of, "wrap": wrap,
            "stale": made.prepared.stale, "restore": captured.restore, "tape": captured.put_on_tape,
        }  # fmt: skip
        self.text: list[str] = []
        self.inputs: list[str] = []  # the tensors among the arguments
        self.kept: list[str] = []  # what it remembers from call to call

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

    def ask(self, question: str) -> None:
        self.text.append(f"if {question}: return MISSED")

    def written(self, args):
        """The function itself."""
        self.ask("settings() != SETTINGS or place.box[0] is not CPU")
        self.unpack("args", args)
        self.surroundings()
        if self.made.prepared.sources:
            self.ask("stale()")
        before, self.text = self.text, []
        self.arrays()
        self.results()
        self.text.append("if run(table): return MISSED")
        self.effects()
        inside = ["try:", *(f"    {line}" for line in self.text), "finally:"]
        taken = ["try: idle.pop()", "except IndexError: return MISSED"]
        lines = [*before, *taken, *inside, "    idle.append(True)"]
        return compiled(self.captured.program.name, self.names, self.kept, lines)

    # ---- the questions -----------------------------------------------------------------------

    def unpack(self, name: str, value) -> None:
        """Ask whether an argument is like this one, and give names to what it holds."""
        kind = type(value)
        if kind not in (list, tuple):
            return self.leaf(name, value)
        self.ask(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}")
        inside = [f"{name}_{k}" for k in range(len(value))]
        if inside:
            self.text.append(f"{', '.join(inside)}, = {name}")
        for each in zip(inside, value, strict=True):
            self.unpack(*each)

    def leaf(self, name: str, value) -> None:
        if type(value) in CONSTANTS:
            return self.ask(f"{name} is not {self.name('constant', value)}")
        if type(value) not in (Tensor, Parameter) or id(value) in self.captured.outer:
            raise NotBound
        kind = self.name("kind", type(value))
        self.inputs.append(name)
        self.ask(f"type({name}) is not {kind} or {name}.stop_gradient is not {value.stop_gradient}")
        self.ask(f"id({name}) in outer")

    def surroundings(self) -> None:
        """What `Captured.fits` asks, at once."""
        captured, cleared = self.captured, self.cleared
        asked = [f"{self.of(x, 'training')} is {on}" for x, on in captured.layers]
        conditions = {(id(x), condition): x for x, condition in captured.conditions}
        for x in cleared.values():  # "zeros" and "none" are as good as "waiting"
            conditions.pop((id(x), "waiting"), None)
        asked += [self.waits(x, condition) for (_, condition), x in conditions.items()]
        asked += [self.waits(x, condition) for (_, condition), x in cleared.items()]
        asked += [f"{self.name('was', was)}.holds()" for was in captured.taken]
        if asked:
            self.ask(f"not ({' and '.join(asked)})")

    def waits(self, x: Tensor, condition: str) -> str:
        where = {"grad": "_grad", "stale": "_stale", "stop": "stop_gradient"}
        asked = {k: self.of(x, v) for k, v in where.items() if f"{{{k}}}" in HOLDS[condition]}
        return f"({HOLDS[condition].format(**asked)})"

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
        """Let the table point to what the tensors hold; most hold what they held."""
        first, keys = len(self.inputs), self.names["keys"]
        for k, cell in enumerate(self.captured.states, first):
            own = type(cell) is TensorCell
            source = self.of(cell.tensor, "array") if own else f"{self.name('cell', cell)}.read()"
            self.array(k, source)
            if own and cell in self.captured.updates:
                self.text.append(f"    keys[{len(keys)}] = key_of(array)")
                keys.append(None)
        for k, name in enumerate(self.inputs):
            self.array(k, f"{name}.array")

    def array(self, k: int, source: str) -> None:
        """Bind input or state `k` if it is another array than at the last call."""
        self.kept.append(f"array{k}")
        self.names[f"array{k}"] = None
        self.text += [
            f"if (array := {source}) is not array{k}:",
            f"    if not bind({k}, array): return MISSED",
            f"    array{k} = array",
        ]

    def results(self) -> None:
        """Memory for the outputs: that of the last call where nobody looks into it any more."""
        for k, output in enumerate(self.captured.program.outputs):
            if output.spec.nbytes > SMALL:
                self.text.append(f"out{k} = new({k})")
                continue
            self.kept.append(f"out{k}")
            self.names[f"out{k}"] = self.context.result(k)
            self.text.append(f"if refs(out{k}) > 2 or id(out{k}) in written: out{k} = new({k})")

    # ---- afterwards --------------------------------------------------------------------------

    def effects(self) -> None:
        """What a run leaves, as `Captured.__call__` does it."""
        captured = self.captured
        if self.names["keys"]:
            self.text.append("mark(keys)")
        inputs = f"[{', '.join(self.inputs)}]"
        first = len(self.inputs)
        for k, cell in enumerate(captured.states):
            if cell in captured.updates and type(cell) is not TensorCell:
                self.text.append(f"{self.name('cell', cell)}.write(array{first + k})")
        for each in captured.after:
            if type(each) is Gradient and not each.outputs:
                continue  # it was asked whether that is so already
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


def compiled(name: str, names: dict, kept: list[str], lines: list[str]):
    """The function of these lines; a traceback shows them."""
    text = [f"def make({', '.join(names)}):", "    def call(args):"]
    text += [f"        nonlocal {', '.join(kept)}"] * bool(kept)
    text += [*(f"        {line}" for line in lines), "    return call"]
    source, space = "\n".join(text) + "\n", {}
    file = f"<a bound call of {name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), space)
    return space["make"](**names)


CALL_STUBS.append(bound)
