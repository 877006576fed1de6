"""Shrink a program on which a path differs: drop outputs, replace computed values by inputs, skip
records, for as long as the path differs with the same kind of difference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from minipaddle.engine.core.record import Record
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.ir.edit import with_inputs
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import INPUT, NUMBER, Program, State, regions
from minipaddle.engine.ir.verifier import VerifyError, verify
from minipaddle.engine.passes.dead_code import dead_code
from tests.executors.paths import Case, ExecutionPath, differs


def shrink(case: Case, call: int, path: ExecutionPath, seconds: float = 60) -> Case:
    """The smallest case found on which the path differs as it does in this call of the case."""
    end = time.monotonic() + seconds
    case = Case(case.name, case.program, [case.calls[call]])
    wanted, smaller = differs(case, path), True
    while smaller and wanted:
        smaller = False
        for other in candidates(case):
            if time.monotonic() > end:
                return case
            if differs(other, path) == wanted:
                case, smaller = other, True
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Smaller cases, the boldest cuts first."""
    for make in (fewer_results, given_values, stepped_over, simpler_regions):
        for candidate in make(case):
            other = tidied(candidate)
            if weight(other.program) < weight(case.program):
                try:
                    verify(other.program)
                except VerifyError:
                    continue
                yield other


def weight(program: Program) -> tuple:
    """What is to become less."""
    inside = sum(sum(weight(p)[:1]) for r in program.records for p in regions(r).values())
    updates = sum(s.update is not None for s in program.states)
    return (
        len(program.records) + inside,
        len(program.outputs) + updates,
        len(program.inputs) + len(program.states),
    )


def tidied(case: Case) -> Case:
    """Without records, inputs and states that nothing needs."""
    program = dead_code(case.program)
    used = {x for r in program.records for x in r.inputs} | set(program.results)
    keep_inputs = [r in used for r in program.inputs]
    keep_states = [s.record in used or s.update is not None for s in program.states]
    keep = [*keep_inputs, *keep_states]
    inputs = [r for r, kept in zip(program.inputs, keep_inputs, strict=True) if kept]
    states = [s for s, kept in zip(program.states, keep_states, strict=True) if kept]
    calls = [[a for a, kept in zip(c, keep, strict=True) if kept] for c in case.calls]
    tidy = Program(program.name, inputs, states, program.records, program.outputs)
    return Case(case.name, tidy, calls)


def of(case: Case, program: Program) -> Case:
    return Case(case.name, program, case.calls)


def fewer_results(case: Case) -> Iterator[Case]:
    """One output, or one update, alone; or all but one; or another value as the only result."""
    p = case.program
    still = [State(s.name, s.record, None, s.storage) for s in p.states]
    for record in reversed(p.records):
        if record.dtype is not None:
            yield of(case, Program(p.name, p.inputs, still, p.records, [record]))
    for k in range(len(p.outputs)):
        outputs = [*p.outputs[:k], *p.outputs[k + 1 :]]
        yield of(case, Program(p.name, p.inputs, p.states, p.records, outputs))
    for k, state in enumerate(p.states):
        if state.update is not None:
            states = [*p.states[:k], still[k], *p.states[k + 1 :]]
            yield of(case, Program(p.name, p.inputs, states, p.records, p.outputs))


def given_values(case: Case) -> Iterator[Case]:
    """Values given instead of computed: the first half, a quarter, …, one."""
    try:
        values = QUIET.copy().run(computed, case)
    except Exception:  # what raises is computed to the end by nobody
        values = {}
    records = [r for r in case.program.records if r in values]
    size = len(records)
    while size:
        for start in range(0, len(records), size):
            yield with_given(case, records[start : start + size], values)
        size //= 2


def computed(case: Case) -> dict:
    """The value of every record, as far as they can be computed."""
    program, run = case.program, Run(NUMPY)
    values = dict(zip(program.given, [np.array(a) for a in case.calls[0]], strict=True))
    for record in program.records:
        inputs = [r.attrs["value"] if r.op is NUMBER else values[r] for r in record.inputs]
        try:
            values[record] = run.compute(program, record, inputs)
        except Exception:
            break
    return {r: v for r, v in values.items() if r not in program.given}


def with_given(case: Case, gone: list[Record], values: dict) -> Case:
    now = {r: Record(INPUT, (), {"name": ""}, *r.spec) for r in gone if r.dtype is not None}
    used = {x for r in case.program.records if r not in gone for x in r.inputs}
    used |= set(case.program.results)
    now = {r: new for r, new in now.items() if r in used}
    p = replaced(case.program, now)
    arrays, count = case.calls[0], len(p.inputs)
    added = [np.array(values[r], r.dtype) for r in now]
    inputs = [*p.inputs, *now.values()]
    program = Program(p.name, inputs, p.states, p.records, p.outputs)
    return Case(case.name, program, [[*arrays[:count], *added, *arrays[count:]]])


def replaced(program: Program, now: dict[Record, Record]) -> Program:
    """The program with other values for some of its records."""
    now, records = dict(now), []
    for record in program.records:
        if record in now:
            now[record] = now.get(now[record], now[record])
            continue
        new = with_inputs(record, [now.get(x, x) for x in record.inputs])
        if new is not record:
            now[record] = new
        records.append(new)
    states = [
        State(s.name, s.record, now.get(s.update, s.update), s.storage) for s in program.states
    ]
    outputs = [now.get(r, r) for r in program.outputs]
    return Program(program.name, program.inputs, states, records, outputs)


def stepped_over(case: Case) -> Iterator[Case]:
    """A record's input in its place, where it has the same spec."""
    for program in without_one(case.program):
        yield of(case, program)


def without_one(program: Program) -> Iterator[Program]:
    for record in program.records:
        for x in record.inputs:
            if x.op is not NUMBER and x.dtype is not None and x.spec == record.spec:
                yield replaced(program, {record: x})


def simpler_regions(case: Case) -> Iterator[Case]:
    """The same in a branch, a loop or a group."""
    for k, record in enumerate(case.program.records):
        for name, region in regions(record).items():
            for inner in without_one(region):
                new = with_inputs(record, record.inputs, {name: dead_code(inner)})
                p = replaced(case.program, {record: new})
                records = [*p.records[:k], new, *p.records[k:]]
                states, outputs = p.states, p.outputs
                yield of(case, Program(p.name, p.inputs, states, records, outputs))
