"""Side effects and aliases beyond what the engine looks at: the same rule, looking into everything.

An iterator, a bound method, a library's object, and a layer hold other objects too, and code that
is not converted changes what it reaches. So this rule follows all that Python's garbage collector
sees, and compares what a region can reach before and after (`snapshot`).

After a branch or a loop on a tensor a name may hold a list of its own, chosen from two: the old one
that it held before, or a new one. Only a run knows whether a write to it changes the old one too.
So the write is refused as long as the user's code that is running still reaches the old one.

A loop over an iterator that a tensor may end is unrolled: the trace takes all items, a run only
some of them. It is refused if the user's code still reaches the iterator.
"""

from dis import get_instructions
from itertools import chain
from operator import length_hint
from types import CodeType

from ..eager.numbers import Number
from ..engine.core.dispatch import current
from ..engine.core.errors import inside, user_frame
from ..engine.eager.device import NUMPY
from ..engine.eager.storage import Written
from ..engine.eager.tensor import Tensor
from ..engine.eager.tracer import Tracer, trace
from ..engine.jit import aliasing
from ..engine.jit.journal import CONTAINERS, Contents
from ..engine.jit.maybe_undefined import MaybeUndefined
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import flatten, parts
from ..engine.jit.truth import not_, truth
from .made import check_made
from .objects import CHANCE, everything, names_in, pairs_of, sources
from .once import took
from .outside import trace_whole, whole
from .picked import find_pick
from .reading import ReadArray, no_array_error
from .snapshot import ObjectSnapshot, find_shared, put_back
from .texts import check_shown


class Strict(aliasing.Aliasing):
    """The rule that is registered with the engine."""

    def reachable(self, roots) -> dict[int, object]:
        return aliasing.reachable([*roots, *find_shared().values()], everything)

    def run(self, call, function, arguments) -> tuple:
        top = current.top
        top.given = flatten(arguments)[0]
        returned, guards, left, same = trace_whole(call, function, arguments)
        leaves = [*chain(flatten(returned)[0], *(each.state.leaves for each in left))]
        if any(type(x) is ReadArray for x in leaves):  # outside it would be a tensor
            raise no_array_error("an array that leaves the function", "return the tensor itself")
        if top.made or top.begun:
            check_made([call], returned, left, self.reachable)
        for x in leaves:
            if isinstance(x, Number):
                x.leave()
        if top.texts:
            check_shown(top, leaves)
        return returned, lambda: [*guards(), *top.spent], left, same

    def check_given(self, captured, own: dict) -> None:
        owners = [each.place.owner for each in captured.left if own]
        outside = {id(x) for guards in captured.guards if owners for x in guards.containers()}
        outside.update(id(x) for x in owners if id(x) not in own)
        ids = [*map(id, own.values())]
        for x in (own.get(id(x), x) for x in owners):
            if ids.count(id(x)) + (id(x) in outside) > 1:
                raise refusal(
                    f"{captured.program.name} changes a {type(x).__name__} that it was given, and "
                    "that it also knows from outside, or that is another argument too",
                    hint="give it a copy",
                )

    def restore_arrays(self, captured, tensors, arguments, results) -> list:
        """The results as a run leaves them in objects: an array that was given stays that array,
        and receives what the run wrote to the tensor that stood for it.
        """
        if not (captured.left or captured.writes):
            return results
        leaves = {id(x): x for x in flatten(arguments)[0]}
        arrays = [x for x in leaves.values() if isinstance(x, NUMPY.ndarray)]
        stood = dict.fromkeys(x for x in tensors if id(x) not in leaves) if arrays else ()
        pairs = {id(x): (x, array) for x, array in zip(stood, arrays, strict=False)}
        for k in (each.k for each in captured.after if type(each) is Written):
            if id(tensors[k]) in pairs:
                x, array = pairs[id(tensors[k])]
                array[...] = x.numpy()
        return [pairs[id(x)][1] if id(x) in pairs else x for x in results]

    def find_new_places(self, journal, written: dict, values) -> list:
        """The places in objects that the region made; a run of a whole function builds them again,
        also those in other objects.
        """
        return super().find_new_places(
            journal, written, () if isinstance(journal, whole) else values
        )

    def snapshot(self, functions) -> ObjectSnapshot:
        snapshot = ObjectSnapshot(functions)
        current.top.start = current.top.start or snapshot
        return snapshot

    def note_changes(self, journal, changes: list) -> None:
        """Note the containers that unconverted code changed; refuse its other changes."""
        for x, held in changes:
            if type(x) in CONTAINERS and id(x) not in current.top.merged:
                place = Contents(x)
                journal.now[place.key] = place.get()
                put_back(x, held)
                journal.noted[place.key] = (place, place.get())
        once = isinstance(journal, whole)
        if once and current.top.made:
            check_made([x for x, _ in changes], None, [], self.reachable)
        if not (once and took(current.top, changes)):
            journal.before.check(journal.block, journal.where, CHANCE if once else ())

    def replace(self, old, new) -> None:
        """Note that `new` may be `old`, and the contents of one those of the other."""
        old, new = (x.known if type(x) is MaybeUndefined else x for x in (old, new))
        olds, news = parts(old), parts(new)
        if old is new or not ((olds and news) or isinstance(new, Tensor)):
            return
        chosen = current.top.chosen = current.top.chosen or {}
        chosen.setdefault(id(new), [new]).append(old)
        if olds and news:
            groups = current.top.merged
            group = {id(x): x for each in (old, new)
                     for x in groups.get(id(each), {0: each}).values()}  # fmt: skip
            groups |= dict.fromkeys(group, group)
            for a, b in zip(olds[1], news[1], strict=False):
                self.replace(a, b)

    def check_write(self, owner) -> None:
        """Refuse a write to something in an object if only a run knows in which object it is."""
        if pick := find_pick(owner):
            pick.changed = True
        group = current.top.merged.get(id(owner), {})
        mine = candidates(owner).keys() if group else ()
        others = [x for x in group.values()
                  if x is not owner and not mine.isdisjoint(candidates(x))]  # fmt: skip
        used = self.reachable([x for _, x in variables_in_use()]) if others else ()
        if any(id(other) in used for other in others):
            kind = type(owner).__name__
            copied = f"{kind}(z)" if type(owner) in CONTAINERS else "copy.copy(z)"
            raise refusal(
                f"a write to a {kind} that a condition or a loop on a tensor chose: it may be "
                f"another {kind} that is used, too, which is known only when the program runs",
                hint=f"copy it before: z = {copied}",
            )

    def items(self, steps):
        """The items of an iterator; refuse one that does not end, or that other code uses too."""
        limit = ENDLESS if has_length(steps) else UNSIZED
        for k, item in enumerate(steps):
            if not k and (used := find_use_elsewhere(steps)):
                raise refusal(
                    f"a loop that a tensor may end, over {used}: how many items it takes from "
                    "that is known only when the program runs",
                    hint="loop over a list of its items: for x in list(it)",
                )
            if k == limit:
                raise refusal(
                    f"a loop over a Python iterator ({type(steps).__name__}) did not end in "
                    f"{limit} iterations, and only a tensor can end it",
                    hint="loop over range(n) or a list, or write `while`",
                )
            yield item


Tracer.chosen = None
"""The objects that tensors chose, and the others: {id: [it, a value, another value, …]}."""


def same_object(a, b):
    """`a is b`; refuse it if only a run knows."""
    if a is b or not (current.top.tracing and current.top.chosen):
        return a is b
    xs, ys = candidates(a), candidates(b)
    if xs.keys().isdisjoint(ys):
        return False
    if type(b) is bool and all(type(x) is bool or k in current.top.chosen for k, x in xs.items()):
        return truth(a) if b else not_(truth(a))
    raise refusal(
        "`is` asks which of two values a condition or a loop on a tensor chose, which is known "
        "only when the program runs",
        hint="keep a number or a boolean that says which, and compare that",
    )


def candidates(x) -> dict:
    """All objects that a value may be, by id."""
    chosen = current.top.chosen or {}
    return aliasing.reachable([x], lambda x: chosen.get(id(x), ()))


def variables_in_use():
    """(name, value) of each variable that the user's running functions can read."""
    frame = user_frame()
    while frame is not None and frame.f_code is not trace.__code__:
        if not inside(frame):
            yield from pairs_of(names_in(frame.f_code), frame.f_globals, [frame.f_globals])
            later = read_later(frame.f_code, frame.f_lasti)
            yield from ((name, x) for name, x in frame.f_locals.items() if name in later)
        frame = frame.f_back


def read_later(code: CodeType, offset: int) -> set:
    """The variables that code may read after an instruction."""
    steps = [*get_instructions(code)]
    back = [step.argval for step in steps if step.offset > offset and "BACKWARD" in step.opname]
    begin = min([offset, *back])
    return {x.argval for x in steps if x.offset > begin and x.opname.startswith("LOAD")}


# ---- iterators -----------------------------------------------------------------------------------

ENDLESS, UNSIZED = 10_000, 256
"""How many items are taken from an iterator that knows its length, and from one that does not."""


def has_length(steps) -> bool:
    """Whether an iterator knows how many items it has, or one that ends when it does."""
    if length_hint(steps, -1) >= 0:
        return True
    return type(steps) in (zip, enumerate, map, filter) and any(map(has_length, sources(steps)))


def find_use_elsewhere(steps) -> str:
    """The name of a loop's iterable, if the user's code reaches that object elsewhere."""
    family = [*aliasing.reachable([steps], sources).values()]
    variables = [*variables_in_use()]
    called = {id(x): f"`{name}`" for name, x in variables}
    around = ObjectSnapshot([x for _, x in variables])
    return next((called.get(id(x)) or around.name(x) for x in family if around.knows(x)), "")


aliasing.register(Strict())
