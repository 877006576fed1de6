"""Beam search: the likeliest text of several that are written side by side.

Source: Wu et al., "Google's Neural Machine Translation System", 2016, section 7 (length penalty).
"""

import numpy as np

from ..engine.core.errors import value_error
from .decoder import Decoder
from .sampling import as_scores


def search_beams(decoder: Decoder, prompt, n: int, end=None, penalty: float = 0.0) -> list[int]:
    """The tokens, at most n and without `end`, that follow a prompt with the greatest sum of
    logarithms of probabilities, divided by their number to the power of `penalty`.

    Each slot of the decoder holds a beam.

    >>> from minipaddle.generation import Decoder, search_beams
    >>> net = paddle.text.GPT(5, width=8, layers=1, heads=2, context=8)
    >>> len(search_beams(Decoder(net, slots=3), [1, 2], 4))
    4
    """
    beams, prompt = decoder.slots, list(prompt)
    if not prompt:
        raise value_error("an empty prompt", "one token or more")
    sums = log_softmax(decoder.read(prompt)[-1])[None]
    texts, done, moved = [[]], [], False
    while True:
        vocab = sums.shape[1]
        best = np.argsort(-sums, axis=None, kind="stable")[: 2 * beams]
        kept = []
        for place in best:
            beam, token = divmod(int(place), vocab)
            total = sums[beam, token]
            if token == end:
                done.append((total / max(1, len(texts[beam])) ** penalty, texts[beam]))
            elif np.isfinite(total) and len(kept) < beams:
                kept.append((beam, [*texts[beam], token], total))
        if not kept or len(kept[0][1]) == n or len(done) >= beams:
            break
        while len(kept) < beams:  # a small vocabulary: a beam that cannot win
            kept.append((0, kept[0][1], -np.inf))
        sources, texts, totals = zip(*kept)
        decoder.reorder(sources if moved else [0] * beams)
        moved = True
        starts = [len(prompt) + len(text) - 1 for text in texts]
        scores = decoder.step([text[-1] for text in texts], starts)
        sums = log_softmax(scores) + np.array(totals)[:, None]
    done += [(total / len(text) ** penalty, text) for _, text, total in kept]
    return max(done, key=lambda each: each[0])[1]


def log_softmax(scores) -> np.ndarray:
    """float64, along the last axis."""
    x = as_scores(scores)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))
