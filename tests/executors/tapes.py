"""The fuzzer of tapes: gradients of random graphs, by the walk back and by a program in C.

    python -m tests.executors.tapes --graphs 1000 --seed 1

It prints which gradients differ by more than rounding may do (see `comparing.py`).
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import minipaddle as paddle
from minipaddle.engine.core.dispatch import Recording
from minipaddle.engine.core.dtype import FLOATS
from minipaddle.engine.core.grad import pull_back
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager import backward
from minipaddle.engine.eager.tracer import trace
from minipaddle.executors.hot import tapes
from tests.executors.comparing import Outcome, difference_of
from tests.executors.graphs import Graph
from tests.executors.hot import at_once, served

AGAIN = 3
"""The walk that a program serves first, where the counts are 1: the second one lets it compile."""


@contextmanager
def both_ways(wrong: list) -> Iterator[None]:
    """In the block both compute all gradients; what differs is added to the list."""

    def pull(seeds, wanted=None, **options):
        found = tapes.walk(seeds, wanted, **options | {"release": False})
        program, arrays = program_of(seeds, wanted)
        expected = pull_back(seeds, wanted, **options)
        if [*found] != [*expected]:
            wrong.append("other records get a gradient, or in another order")
        elif program:
            a, b = ([g.array for g in each.values()] for each in (expected, found))
            difference = difference_of(Outcome(a, None, ""), Outcome(b, None, ""), program, arrays)
            wrong.extend([difference] if difference else [])
        return expected

    backward.WALKS.append(pull)
    try:
        yield
    finally:
        backward.WALKS.remove(pull)


def program_of(seeds, wanted) -> tuple:
    """The program that serves a tape, and the arrays that go into it; None if it is walked."""
    try:
        reading = tapes.TapeReading(seeds, wanted)
    except tapes.UnreadableTape:
        return None, []
    tape = tapes.TAPES.codes.get(tuple(reading.key))
    if tape is None or tape.executable is None:
        return None, []
    with Recording(False):
        program = trace(tape.walk, [Spec(a.shape, a.dtype) for a in reading.arrays]).program
    return program, reading.arrays


def learn(seed: int, call: int) -> None:
    """Compute a graph, and the gradients of all that it is given."""
    paddle.seed(seed + call)
    graph = Graph(seed)
    inputs = graph.arguments(call)
    for x in [*inputs, *graph.parameters]:
        x.stop_gradient = x.spec.dtype not in FLOATS
    ends = [y for y in graph(*inputs) if not y.stop_gradient]
    if ends:
        losses = [(y * (0.5 + k)).sum().astype("float64") for k, y in enumerate(ends)]
        sum(losses[1:], losses[0]).backward()


def fuzz(seed: int) -> tuple[str, list]:
    """Who computed the gradients of a graph, and what is wrong with them."""
    wrong: list = []
    with at_once():
        try:
            for _ in range(AGAIN - 1):
                learn(seed, 0)
            with both_ways(wrong):
                for call in range(2):
                    learn(seed, call)
        except (IndexError, ValueError, RuntimeError) as error:  # eager mode refuses the graph
            return type(error).__name__, []
        if served(tapes.TAPES):
            return "C", wrong
        return [*(str(tape.error)[:90] for tape in tapes.TAPES), "the walk"][0], wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = Counter()
    for seed in range(given.seed, given.seed + given.graphs):
        how, wrong = fuzz(seed)
        counts[how] += 1
        for each in wrong:
            print(f"graph {seed}: {each}", flush=True)
    for how, count in counts.most_common():
        print(f"{count:,} by {how}")


if __name__ == "__main__":
    main()
