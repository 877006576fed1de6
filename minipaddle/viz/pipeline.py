"""Pipelines as pictures: what each stage computes when, and how much it holds."""

from ..distributed.simulator import Timeline
from .chart import Bar, Picture
from .parallel import stack_timelines
from .style import count

KINDS = {"F": "#56b4e9", "B": "#009e73", "I": "#8fd0a8", "W": "#e69f00"}
"""The colours of jobs, by their kind."""

NAMES = {"F": "forward", "B": "backward", "I": "gradients of inputs", "W": "gradients of weights"}


def pipeline(*found: Timeline, titles=()) -> Picture:
    """Stages from above to below, and their jobs from left to right; the number is that of the
    micro-batch, later chunks have darker edges. White is the bubble.

    Several timelines, of `pipeline.simulate` or of real ranks (`PipelineParallel.timeline`), stand
    one below the other on one scale.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.pipeline.schedules import build_schedule
    >>> from minipaddle.distributed.pipeline.simulate import simulate
    >>> names = "1F1B", "ZBH1"
    >>> print(viz.pipeline(*(simulate(build_schedule(n, 4, 8)) for n in names), titles=names))
    1F1B: 4 stages, 33 s, bubble 27.3 %, at most 4 forwards kept
    ZBH1: 4 stages, 27 s, bubble 11.1 %, at most 4 forwards kept
    """
    used = {s.name[0] for each in found for s in each.spans}
    shown = {NAMES[kind]: colour for kind, colour in KINDS.items() if kind in used}
    return stack_timelines(found, titles, draw_job, describe, shown, "seconds", "stage")


def draw_job(span, widest: float) -> Bar:
    """A box, with its micro-batch if there is room."""
    kind, (micro_batch, chunk) = span.name[0], span.name[1:].split(".")
    wide = span.end - span.start
    text = micro_batch if wide > 0.012 * widest else ""
    look = {"edgecolor": "white" if chunk == "0" else "black", "high": 0.85}
    return Bar.in_row(span.device, span.start, wide, KINDS[kind], text, **look)


def describe(each: Timeline, stages: int) -> str:
    """How long it takes, how much of it is bubble, what a stage holds."""
    held = max(most_kept(each, stage) for stage in range(stages))
    bubble = f"bubble {100 * (1 - each.efficiency):.1f} %"
    return f"{count(stages, 'stage')}, {each.seconds:.3g} s, {bubble}, at most {held} forwards kept"


def most_kept(each: Timeline, stage: int) -> int:
    """The peak number of micro-batches whose activations a stage keeps for their backward."""
    kept = most = 0
    for span in sorted((s for s in each.spans if s.device == stage), key=lambda s: s.start):
        kept += (span.name[0] == "F") - (span.name[0] in "BW")
        most = max(most, kept)
    return most
