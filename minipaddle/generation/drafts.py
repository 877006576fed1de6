"""Speculative decoding: a small model drafts tokens, the large one checks them in one run.

The text is distributed as if the large model had drawn each token itself. A draft x of the small
model's distribution q is accepted with probability min(1, p(x) / q(x)), where p is the large
model's; otherwise a token is drawn from what p has more than q.

Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023.
"""

import warnings
from time import perf_counter

import numpy as np

from ..engine.core.errors import teach, value_error
from ..engine.core.slots import slot
from .decoder import Decoder
from .sampling import Sampler


@slot("generation.accept_or_replace")
def accept_or_replace(drafts: list[int], q, p, sampler: Sampler) -> list[int]:
    """The drafts that are accepted, and one more token of the large model's.

    q: what each draft was drawn from, [n, vocab]
    p: what the large model would draw each from, and the token after the last, [n + 1, vocab]
    """
    for k, x in enumerate(drafts):
        if sampler.random.random() * q[k][x] >= p[k][x]:
            return [*drafts[:k], sampler.draw_from(np.maximum(p[k] - q[k], 0))]
    return [*drafts, sampler.draw_from(p[len(drafts)])]


DRAFTS, RUNS = 3, 4
"""The drafts of a run, and the first runs with drafts and without, by which the clock decides."""


def drafts_pay(runs: list[tuple[float, int]]) -> bool:
    """Whether a token takes less time with drafts: `runs` are seconds and tokens of RUNS runs with
    drafts, then of RUNS without. The first one reads the prompt; one that compiles takes longer.
    """
    drafted, (plain, _) = runs[1:RUNS], min(runs[RUNS : 2 * RUNS])
    tokens = float(np.mean([n for _, n in drafted]))
    each = min(drafted)[0] / tokens
    if each < plain:
        return True
    what = (
        f"drafts are turned off: {1e3 * each:.3g} ms a token with them, {1e3 * plain:.3g} without"
    )
    more = f"{tokens:.2g} tokens a run with {DRAFTS} drafts"
    warnings.warn(teach(f"{what} ({more})", hint="ahead=0 or ahead=3 decides"), stacklevel=3)
    return False


def write_with_draft(
    large: Decoder, small: Decoder, prompt, n: int, sampler: Sampler | None = None,
    ahead: int | None = None, end=None,
) -> list[int]:  # fmt: skip
    """The n tokens that follow a prompt, or those before the token `end`; `ahead` drafts a run.

    Without `ahead` there are three. Where no token is drawn (temperature 0), the clock decides once
    for each text whether there are more after the first runs; a warning says if there are none.

    >>> from minipaddle.generation import Decoder, Sampler, write_with_draft
    >>> large = Decoder(paddle.text.GPT(5, width=8, layers=2, heads=2, context=8))
    >>> small = Decoder(paddle.text.GPT(5, width=4, layers=1, heads=1, context=8))
    >>> len(write_with_draft(large, small, [1, 2], 4, Sampler(seed=0)))
    4
    """
    sampler, text, first = sampler or Sampler(), list(prompt), len(prompt)
    if not text:
        raise value_error("an empty prompt", "one token or more")
    large.require_room(first + n)
    small.require_room(first + n)
    held = read = 0  # of the text, tokens in the caches of the large and of the small model
    runs: list[tuple[float, int]] = []
    most, timed = DRAFTS if ahead is None else ahead, ahead is None and not sampler.temperature
    while len(text) < first + n:
        if timed and len(runs) in (RUNS, 2 * RUNS):
            most = DRAFTS if len(runs) > RUNS and drafts_pay(runs) else 0
        drafts, q, start = [], [], perf_counter()
        while len(drafts) < min(most, first + n - len(text) - 1):
            q.append(sampler.probabilities(small.read([*text, *drafts][read:], start=read)[-1]))
            read = len(text) + len(drafts)
            drafts.append(sampler.draw_from(q[-1]))
        scores = large.read([*text, *drafts][held:], start=held)[-len(drafts) - 1 :]
        new = accept_or_replace(drafts, q, [*map(sampler.probabilities, scores)], sampler)
        if end in new:
            return [*text, *new[: new.index(end)]][first:]
        text += new
        held, read = len(text) - 1, min(read, len(text) - 1)
        runs.append((perf_counter() - start, len(new)))
    return text[first:]
