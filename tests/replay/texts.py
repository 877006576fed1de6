"""The texts of a program: what the passes leave of it, C, CUDA, the memory plan, first results."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator

import numpy as np

from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.executors.native import CannotCompile, Executable
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.manager import optimized
from minipaddle.engine.passes.specialise import sizes_of, specialise
from minipaddle.executors.gpu import cuda
from tests.codegen.cuda_on_cpu import Cpu

from .programs import ROOT, Case

SOME = 4
"""The numbers of a result that are shown, besides the hash of all."""
UNSTABLE = [
    (re.compile(r"paddle_[0-9a-f]{12}"), "PREFIX"),  # made of the file's content
    (re.compile(r"\b0x[0-9a-f]{8,}\b"), "ADDRESS"),
    (re.compile(r"\.py:\d+"), ".py"),  # the lines of tests move, too
    (re.compile(re.escape(f"{ROOT}/")), ""),
    (re.compile(rf"{re.escape(tempfile.gettempdir())}/[\w./-]+"), "TEMPORARY"),
]


class Writer(Cpu):
    """A GPU for which kernels are written, and not compiled."""

    def compile(self, text, names):
        return dict.fromkeys(names)


def texts_of(case: Case) -> dict[str, str]:
    """The texts of a case by title; of what no C can compute, the reason."""
    shapes = tuple(np.shape(a) for a in case.arrays)
    program = specialise(case.program, sizes=sizes_of(case.program, shapes))
    frozen = all(state.update is None for state in program.states)
    after = optimized(program, {"frozen": frozen}).program
    texts = {"program": str(after)}
    try:
        native = Executable(program, frozen=frozen, load=False)
        texts |= {"C": native.source.text, "plan": "\n".join(plan_lines(native.plan))}
        texts["arena"] = f"{native.plan.size} bytes"
        texts["CUDA"] = cuda.CudaExecutable(program, device=Writer()).kernels.body
    except CannotCompile as why:
        texts["C"] = f"refused: {why}"
    texts["results"] = format_arrays(case.results or run(program, after, case.arrays))
    return {title: stable(text) for title, text in texts.items()}


def stable(text: str) -> str:
    """A text without what differs from one process to the next."""
    for pattern, word in UNSTABLE:
        text = pattern.sub(word, text)
    return text


def plan_lines(plan) -> Iterator[str]:
    """The totals of a memory plan, the location of each value, and the plans of its regions."""
    yield str(plan)
    for record, locations in plan.locations.items():
        listed = locations if record.dtype is None else [locations]
        yield f"{record.op.name}: {', '.join(map(str, listed))}"
    for copy in [*plan.before, *plan.copies]:
        yield f"copy {copy.source} to {copy.target}"
    for record, regions in plan.regions.items():
        for name, region in regions.items():
            yield f"{record.op.name}, {name}:"
            yield from plan_lines(region)


def run(program, after, arrays) -> list:
    """What the interpreter gives for a program after the passes, whose constants are states."""
    added = [state.storage.read() for state in after.states[len(program.states) :]]
    copies = [np.array(a) for a in arrays]
    return QUIET.copy().run(Run(NUMPY), after, [*copies, *added])


def format_arrays(arrays) -> str:
    """For each array its dtype and shape, a hash of its bits, and its first numbers."""
    lines = []
    for a in map(np.ascontiguousarray, arrays):
        bits = hashlib.sha256(a.tobytes()).hexdigest()[:12]
        first = " ".join(f"{x:.6g}" for x in a.ravel()[:SOME].tolist())
        lines.append(f"{a.dtype}{list(a.shape)} {bits} {first}")
    return "\n".join(lines)
