"""A text written with drafts is distributed as the large model's own."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from minipaddle.generation import Decoder, Sampler, drafts, write_with_draft
from minipaddle.generation.drafts import accept_or_replace, drafts_pay

from .test_decoder import gpt, tokens, whole

N = 20000


def chi_square(seen, p) -> float:
    """How far counts lie from probabilities."""
    expected = np.asarray(p) * np.sum(seen)
    assert not np.any(np.asarray(seen)[expected == 0])
    few = expected > 0
    return float((((seen - expected) ** 2)[few] / expected[few]).sum())


@pytest.mark.parametrize("seed", range(3))
def test_tokens_are_the_large_models(seed):
    """Whatever the drafts are drawn from: two tokens in a row, each a distribution of its own."""
    rng, sampler = np.random.default_rng(seed), Sampler(seed=seed)
    q, p = rng.dirichlet(np.ones(4), 2), rng.dirichlet(np.ones(4), (1 + 4, 1))[:, 0]
    q[0] = [0.5, 0.5, 0, 0]  # some tokens are never drafted
    first, pairs = np.zeros(4), np.zeros((4, 4))
    for _ in range(N):
        drafts = [sampler.draw_from(q[0]), sampler.draw_from(q[1])]
        after = p[1 + drafts[0]]  # what the large model says after the first draft
        found = accept_or_replace(drafts, q, [p[0], after, p[0]], sampler)
        first[found[0]] += 1
        if len(found) > 1:
            pairs[found[0], found[1]] += 1
    assert chi_square(first, p[0]) < 16.3  # 3 degrees of freedom, 0.1 %
    for k in range(4):
        if pairs[k].sum() > 500:
            assert chi_square(pairs[k], p[1 + k]) < 16.3


def test_the_drafts_of_the_same_model_are_all_accepted():
    p, sampler = np.random.default_rng(0).dirichlet(np.ones(5), 4), Sampler(seed=0)
    for _ in range(200):
        drafts = [sampler.draw_from(each) for each in p[:3]]
        assert accept_or_replace(drafts, p[:3], p, sampler)[:3] == drafts


def test_texts_of_two_models():
    """Of 2 tokens each text comes as often as the large model says."""
    large, small = gpt(seed=0), gpt(seed=5, width=8, layers=1)
    decoders, n = (Decoder(large), Decoder(small)), 500
    sampler = Sampler(temperature=1.5, top_k=2, seed=1)
    seen = Counter(
        tuple(write_with_draft(*decoders, [1, 2], 2, sampler, ahead=1)) for _ in range(n)
    )

    def chance(text):
        scores = whole(large, [1, 2, *text])
        return np.prod([sampler.probabilities(scores[1 + k])[t] for k, t in enumerate(text)])

    texts = [t for t in product(range(7), repeat=2) if chance(t) > 0]
    assert len(texts) == 4
    assert seen.keys() <= {*texts}
    assert chi_square([seen[t] for t in texts], [chance(t) for t in texts]) < 16.3


@pytest.mark.parametrize("ahead", [1, 3, 6])
def test_at_temperature_0_it_is_the_greedy_text(ahead):
    large, small = gpt(seed=2), gpt(seed=6, width=8, layers=1)
    greedy, text = [], [3, 1]
    while len(greedy) < 14:
        greedy.append(int(whole(large, text + greedy)[-1].argmax()))
    pair = Decoder(large), Decoder(small)
    assert write_with_draft(*pair, text, 14, Sampler(0), ahead) == greedy
    end = greedy[5]
    found = write_with_draft(*pair, text, 14, Sampler(0), ahead, end=end)
    assert found == greedy[: greedy.index(end)]
    with pytest.raises(ValueError, match="17 tokens"):
        write_with_draft(*pair, tokens(9), 8, Sampler(0))


FIRST = (9.0, 1)
"""A run that reads the prompt."""


def test_drafts_that_pay_stay():
    runs = [
        FIRST,
        (2.0, 4),
        (5.0, 4),
        (2.0, 2),
        *[(1.0, 1)] * 4,
    ]  # 2 s for 10 / 3 tokens; 1 s for 1
    assert drafts_pay(runs)


def test_drafts_that_do_not_pay_are_turned_off():
    runs = [FIRST, (2.0, 1), (5.0, 1), (2.0, 2), *[(1.0, 1)] * 3, (7.0, 1)]
    with pytest.warns(UserWarning, match="1.5e\\+03 ms a token with them, 1e\\+03 without"):
        assert not drafts_pay(runs)


@pytest.mark.parametrize("pay", [True, False])
def test_the_text_is_the_same_with_drafts_and_without(pay, monkeypatch):
    monkeypatch.setattr(drafts, "drafts_pay", lambda runs: pay)
    monkeypatch.setattr(drafts, "RUNS", 1)
    pair = Decoder(gpt(seed=2)), Decoder(gpt(seed=6, width=8, layers=1))
    read, lengths = pair[1].read, []
    monkeypatch.setattr(
        pair[1], "read", lambda x, start: lengths.append(start) or read(x, start=start)
    )
    fixed = write_with_draft(*pair, [3, 1], 14, Sampler(0), ahead=0)
    assert write_with_draft(*pair, [3, 1], 14, Sampler(0)) == fixed
    assert (max(lengths) > 8) is pay
