"""ZeRO's stages as bars: the memory of a rank by formula, and as its program has it."""

from ..engine.core.errors import type_error
from ..engine.eager.storage import Gradient, GradientStorage
from ..engine.passes.buffer_assignment import MemoryPlan
from ..engine.passes.manager import optimized
from .chart import Bar, Panel, Picture, chart
from .style import bytes_text, count
from .target import forward_of

CUT_AT = {"weights": 3, "gradients": 2, "states": 1}
"""The first stage that shards a kind of memory."""
WORK = "working memory"
COLOURS = {"weights": "#0072b2", "gradients": "#e69f00", "states": "#009e73", WORK: "#c8c8c8"}


def stages(steps: dict, ranks: int) -> Picture:
    """Two bars for each stage of ZeRO: the memory of a rank by formula, and in its program.

    steps: {stage: a training step that `to_static` made, as a rank called it}; stage 0: nothing in
        pieces. A step that leaves its gradients (that does not clear them) holds them.
    ranks: along the axis of the mesh that the pieces are cut for

    What else the program needs, the arena of its plan, is its working memory: activations, and
    weights while they are gathered. Raises TypeError for a function that was not captured.
    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", 2020.

    >>> from minipaddle import viz
    >>> net = paddle.nn.Linear(64, 64, bias_attr=False)
    >>> sgd = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    >>> @paddle.jit.to_static
    ... def step(x):
    ...     net(x).sum().backward()
    ...     sgd.step()
    >>> step(paddle.ones([2, 64]))
    >>> print(viz.stages({0: step}, ranks=1))
    1 rank, 4,096 weights: by formula / in its program
    stage 0: weights 16.0 KB / 16.0 KB, gradients 16.0 KB / 16.0 KB, states 16.0 KB / 16.0 KB
      together 48.0 KB / 48.0 KB, working memory 32.0 KB
    """
    figures = {k: (predict_bytes(s, k, ranks), count_bytes(s)) for k, s in steps.items()}
    size = max(1, *(sum(each.values()) for pair in figures.values() for each in pair))
    unit, name = next((u, n) for u, n in UNITS if size >= u)
    bars, lines = [], describe(steps, figures, ranks)
    for row, pair in enumerate(figures.values()):
        for side, each in zip((-0.38, 0.02), pair, strict=True):
            look, bottom = {"hatch": "///", "alpha": 0.6} if side < 0 else {}, 0.0
            for kind, nbytes in each.items():
                corner = row + side, bottom, 0.36, nbytes / unit
                bars.append(Bar(*corner, COLOURS[kind], look=look | {"edgecolor": "white"}))
                bottom += nbytes / unit
    axes = {"xticks": range(len(figures)), "xticklabels": [f"stage {k}" for k in figures]}
    axes |= {"ylabel": name, "ylim": (0, 1.15 * size / unit)}
    panel = Panel(bars, f"{lines[0]} (left, hatched / right)", axes=axes)
    return chart((7, 3.4), [panel], "\n".join(lines), colours=COLOURS)


UNITS = ((2**20, "MB"), (2**10, "KB"), (1, "bytes"))


def describe(steps: dict, found: dict, ranks: int) -> list[str]:
    """The bars in words."""
    states = find_captured(next(iter(steps.values()))).program.states
    weights = sum(s.record.spec.size for s in states if kind_of(s.storage) == "weights")
    lines = [f"{count(ranks, 'rank')}, {count(weights, 'weight')}: by formula / in its program"]
    for stage, (formula, program) in found.items():
        pairs = [f"{k} {bytes_text(formula[k])} / {bytes_text(program[k])}" for k in CUT_AT]
        both = [bytes_text(sum(each[k] for k in CUT_AT)) for each in (formula, program)]
        lines.append(f"stage {stage}: {', '.join(pairs)}")
        lines.append(f"  together {' / '.join(both)}, {WORK} {bytes_text(program[WORK])}")
    return lines


def bytes_of_stage(stage: int, ranks: int, weights=2, gradients=2, states=12) -> dict[str, float]:
    """The bytes that a rank holds, given the bytes of the whole model; without, the bytes of
    a weight in mixed precision with Adam.

    >>> from minipaddle.viz.zero_stages import bytes_of_stage
    >>> [sum(bytes_of_stage(k, 4).values()) for k in range(4)]  # 16, 4 + 12/n, 2 + 14/n, 16/n
    [16, 7.0, 5.5, 4.0]
    """
    totals = {"weights": weights, "gradients": gradients, "states": states}
    return {kind: n / ranks if stage >= CUT_AT[kind] else n for kind, n in totals.items()}


def predict_bytes(step, stage: int, ranks: int) -> dict[str, float]:
    """The bytes by formula: of the whole weights and states, and gradients like the weights."""
    totals = dict.fromkeys(CUT_AT, 0)
    for state in find_captured(step).program.states:
        totals[kind_of(state.storage)] += state.record.spec.nbytes
    return bytes_of_stage(stage, ranks, **totals | {"gradients": totals["weights"]})


def count_bytes(step) -> dict[str, int]:
    """The bytes in the memory plan of the program that this rank runs.

    >>> from minipaddle.viz.zero_stages import count_bytes
    >>> w = paddle.create_parameter([8], "float32")
    >>> step = paddle.jit.to_static(lambda: (w * w).sum().backward())
    >>> step()
    >>> count_bytes(step)
    {'weights': 32, 'gradients': 32, 'states': 0, 'working memory': 0}
    """
    counts, plan = dict.fromkeys(COLOURS, 0), plan_of(step)
    for state in plan.program.states:
        counts[kind_of(state.storage)] += state.record.spec.nbytes
    for effect in find_captured(step).after:
        if type(effect) is Gradient:
            counts["gradients"] += sum(plan.program.outputs[k].spec.nbytes for k in effect.outputs)
    counts[WORK] = plan.size
    return counts


def kind_of(storage) -> str:
    """The kind of a program's state: a weight, a gradient that a backward adds to, or another."""
    if isinstance(storage, GradientStorage):
        return "gradients"
    tensor = getattr(storage, "tensor", None)
    return "weights" if getattr(tensor, "is_parameter", False) else "states"


def find_captured(step):
    """The captured program of a step; TypeError if there is none."""
    captured = getattr(forward_of(step), "concrete_program", None)
    if captured is None:
        expected = "a step that paddle.jit.to_static made and that was called"
        raise type_error(f"the memory of {type(step).__name__}", expected=expected)
    return captured


def plan_of(step) -> MemoryPlan:
    """The plan of the executable, or of the program that the interpreter runs: of this rank's."""
    cache = find_captured(step).executables
    for executable in cache.compiled.values():
        if hasattr(executable, "plan"):
            return executable.plan
    parts = [part for part, *_ in cache.parts.values()]
    return optimized(parts[-1] if parts else find_captured(step).program).planned()
