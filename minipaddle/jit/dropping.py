"""A saved program without the outputs that are not chosen and the values that nothing reads."""

from ..engine.core import dim as dims
from ..engine.core.dispatch import describe
from ..engine.core.errors import value_error
from ..engine.ir.control import while_loop
from ..engine.ir.cut import pruned
from ..engine.ir.program import ITEM, NUMBER, Program, everywhere, regions
from ..engine.jit.tree import flatten
from .saved import Method


def select_outputs(method: Method, chosen) -> Method:
    """A method that gives some of its outputs, as `output_spec` says."""
    places = [k for k in method.places if k is not None]
    names = [f"output_{k}" for k in range(len(places))]
    if len(chosen) == len(places):
        return method
    known = [names.index(x.name) if getattr(x, "name", None) in names else x for x in chosen]
    if not known or any(type(k) is not int or k not in range(len(places)) for k in known):
        raise value_error(
            f"jit.save was given {describe(chosen):.80} in output_spec",
            expected=f"places from 0 to {len(places) - 1}, or some of the function's outputs",
        )
    program = method.program
    program.outputs = [program.outputs[places[k]] for k in known]
    leaves, structure = flatten(None if len(known) == 1 else [None] * len(known))
    return Method(drop_saved_iterations(program), structure, leaves, [*range(len(known))])


def drop_saved_iterations(program: Program) -> Program:
    """The program, whose loops save no iterations for a derivative that it does not compute."""
    drop_unread_items(program)
    used: dict = {}
    for record in everywhere(program):
        if record.op is ITEM:
            loop = record.inputs[0]
            used[loop] = max(used.get(loop, 0), record.attrs["k"])
    for record in everywhere(program):
        for region in regions(record).values():
            pruned(region)
        n = record.attrs.get("carried")
        if record.op is while_loop and used.get(record, 0) < n:
            record.attrs["keep"], record.shape = False, record.shape[:n]
    return program


def drop_unread_items(program: Program) -> None:
    """Drop what nothing reads: also items of loops that `pruned` keeps because they are the first
    to show a size, if nothing else has this size.
    """
    pruned(program)
    records = [*everywhere(program)]
    read = {x for r in records for x in r.inputs} | {*program.results}
    items = [r for r in program.records if r.op is ITEM and r.inputs[0].op is while_loop]
    idle = {r for r in items if r not in read}
    rest = [r for r in records if r not in idle and r.op is not while_loop]
    numbers = [x.attrs["value"] for r in records for x in r.inputs if x.op is NUMBER]
    sizes = sizes_in((*numbers, *((r.shape, *r.attrs.values()) for r in rest)))
    program.records = [r for r in program.records if r not in idle or sizes_in(r.shape) & sizes]


def sizes_in(value) -> set:
    """The names of the open sizes in a value of a record."""
    return set().union(*map(sizes_in, value)) if type(value) is tuple else dims.symbols(value)
