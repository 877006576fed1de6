"""Checks that a program is well formed: values are defined before use, specs follow the rules."""

from __future__ import annotations

from ..core import dim as dims
from ..core.dim import Dim, hint_of
from ..core.record import Record, Spec, spec_text
from ..core.slots import slot
from . import control
from .program import ITEM, NUMBER, OP, SPEC, Program, regions


class VerifyError(ValueError):
    """A program is not well formed; the message shows the record."""


def invalid(record: Record, what: str) -> VerifyError:
    """The error for a record that is not well formed."""
    return VerifyError(f"{format_record(record)}: {what}")


def verify(program: Program, trusted: set | None = None) -> Program:
    """The program itself; raises VerifyError if it is not well formed.

    Records that are `trusted`, themselves or by their `premises`, were looked at before, in a
    program that this one was made from. What is looked at here is added.
    """
    with dims.assuming(program.guards):
        check_program(program, trusted or set())
    return program


def premises(record: Record) -> tuple:
    """The premises of a record's spec, and the spec: a copy with other inputs has the same."""
    specs = map(SPEC, record.inputs)
    if NUMBER in map(OP, record.inputs):
        specs = [x if x.op is NUMBER else (x.shape, x.dtype) for x in record.inputs]
    return record.op, id(record.attrs), record.shape, record.dtype, *specs


def check_program(program: Program, trusted: set) -> None:
    check_uses(program)
    for record in program.records:
        if record in trusted or (key := premises(record)) in trusted:
            trusted.add(record)
            continue
        trusted |= {record, key}
        for name, region in regions(record).items():
            if not isinstance(record.op, control.Control):
                raise invalid(record, f"{name} is a region, which it has no use for")
            if region.states:
                raise invalid(record, f"the region {name} has states")
            check_program(region, trusted)
        if record.op is ITEM:
            check_item(record)
        else:
            check_regions(record)
            check_spec(record)
    for state in [s for s in program.states if s.update is not None]:
        check_update(program, state)


@slot("ir.check_uses")
def check_uses(program: Program) -> None:
    """Raise VerifyError unless every value is defined once, before its uses."""
    known = set(program.given)
    if len(known) < len(program.given):
        raise VerifyError(f"{program.name}: an input or a state is listed twice")
    for record in program.records:
        if record in known:
            raise VerifyError(f"{program.name}: a record stands twice: {format_record(record)}")
        for edge in record.inputs:
            if edge not in known and edge.op is not NUMBER:
                raise invalid(record, f"uses {format_record(edge)}, which is not defined before")
            if edge.dtype is None and record.op is not ITEM:
                raise invalid(record, f"uses all results of {edge.op.name} as one")
        known.add(record)
    for result in program.results:
        if result not in known and result.op is not NUMBER:
            raise VerifyError(
                f"{program.name}: returns {format_record(result)}, which is not defined"
            )
        if result.dtype is None:
            raise VerifyError(f"{program.name}: returns all results of {result.op.name} as one")


def check_update(program: Program, state) -> None:
    """Raise VerifyError unless a state's update is what the state is."""
    now, old = state.update, state.record
    if now.op is NUMBER or not (SPEC(now) == SPEC(old) or compatible(now.spec, old.spec)):
        raise VerifyError(
            f"{program.name}: the state {state.name} is {state.record.spec}, its update "
            f"{format_record(now)}"
        )


def format_record(record: Record) -> str:
    inputs = ", ".join(
        str(e.attrs["value"]) if e.op is NUMBER else spec_text(e) for e in record.inputs
    )
    return f"{record.op.name}({inputs}) : {spec_text(record)}"


def check_item(record: Record) -> None:
    """Raise VerifyError unless there is such a result, and it is what the record says."""
    whole, k = record.inputs[0], record.attrs["k"]
    several = whole.dtype is None and isinstance(k, int) and 0 <= k < len(whole.shape)
    if not several or record.spec != whole.shape[k]:
        raise invalid(record, f"no result number {k} of {format_record(whole)}")


@slot("ir.check_spec")
def check_spec(record: Record) -> None:
    """Raise VerifyError unless a record's spec is what the rule of its operator says."""
    own = record.spec if record.dtype is not None else record.shape
    try:
        inferred = infer_spec(record)
        # A rule as text may fail, too: its dtype may be any attribute of a hostile program.
        rule = "" if inferred == own or compatible(inferred, own) else str(inferred)
    except Exception as error:
        raise invalid(record, f"{error}") from error
    if rule:
        raise invalid(record, f"its rule says {rule}")


def infer_spec(record: Record):
    """The spec that the rule of a record's operator gives, or a tuple of them."""
    specs = [hint_of(e.attrs["value"]) if e.op is NUMBER else Spec(*SPEC(e)) for e in record.inputs]
    return dims.match_sizes(record.op.result_spec, specs, record.attrs)


def compatible(found, own) -> bool:
    """Whether specs, or several of them, are the same; an unknown size is compatible with any."""
    if isinstance(found, Spec) != isinstance(own, Spec):
        return False
    if not isinstance(found, Spec):
        return len(found) == len(own) and all(map(compatible, found, own))
    if found.dtype != own.dtype or len(found.shape) != len(own.shape):
        return False
    return all(a == b or unknown(a) for a, b in zip(found.shape, own.shape, strict=True))


def fits(entering: Spec, given: Spec) -> bool:
    """Whether a value may enter a loop's region, whose own symbols take any size."""
    pairs = zip(entering.shape, given.shape)
    return (entering.dtype, len(entering.shape)) == (given.dtype, len(given.shape)) and all(
        a == b or dims.UNSEEN.match(str(a)) for a, b in pairs
    )


def unknown(n) -> bool:
    return isinstance(n, Dim) and any(name[0] == "?" for name in dims.symbols(n))


REGIONS = {
    control.cond: {"true", "false"},
    control.while_loop: {"test", "body"},
    control.custom: {"backward"},
    control.fused: {"region"},
}


def check_regions(record: Record) -> None:
    """Raise VerifyError unless the regions of a record take and give what it does."""
    if not isinstance(record.op, control.Control):
        return
    inside = regions(record)
    wanted = REGIONS[record.op]
    if inside.keys() != wanted:
        raise invalid(record, f"its regions are {[*inside]}, not {sorted(wanted)}")
    specs, own = [e.spec for e in record.inputs], {}
    if record.op is control.cond:
        takes = specs[1:]
        counts = {len(region.outputs) for region in inside.values()}
        if not specs or specs[0].size != 1 or len(counts) > 1:
            raise invalid(record, "its branches do not give the same")
    elif record.op is control.fused:
        takes = specs
    elif record.op is control.custom:
        n, ends = record.attrs["results"], inside["backward"].outputs
        if not isinstance(n, int) or not 0 <= n <= len(specs) - len(ends):
            raise invalid(record, "results is a number of inputs")
        takes = [*specs[:n], *specs[:n], *specs[n + len(ends) :]]
    else:
        takes, n = specs, record.attrs["carried"]
        if not isinstance(n, int) or type(record.attrs["keep"]) is not bool:
            raise invalid(record, "carried is a number, keep is True or False")
        reads, writes = (len(record.attrs.get(key, ())) for key in ("reads", "writes"))
        if isinstance(trips := record.attrs.get("trip_count", None if reads + writes else 0), Dim):
            trips = 0
        if not isinstance(trips, int) or trips < 0:
            raise invalid(record, "trip_count is the number of its iterations")
        body, test = inside["body"].outputs, inside["test"].outputs
        entering = [r.spec for r in inside["body"].inputs[:n]]
        carried = zip(entering, specs, (r.spec for r in body))
        cut = len(specs) - reads
        if not n == len(body) - writes == len(entering) <= cut or not all(
            fits(spec, initial) and fits(spec, result) for spec, initial, result in carried
        ):
            raise invalid(record, "its body does not give what it carries")
        takes = [*entering, *specs[n:]]
        sliced = (Spec(x.shape[x.shape[:1] == (trips,) :], x.dtype) for x in specs[cut:])
        own = {"body": [*takes[:cut], *sliced]}
        if len(test) != 1 or test[0].spec.size != 1:
            raise invalid(record, "its test gives no single value")
    for name, region in inside.items():
        if not compatible([r.spec for r in region.inputs], own.get(name, takes)):
            raise invalid(record, f"the region {name} takes other inputs")
