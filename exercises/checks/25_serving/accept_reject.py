"""Checks of 25_serving/accept_reject."""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.generation import Decoder, Sampler, write_with_draft
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Accept or reject: drafts of a small model, the text of a large one",
    level="medium",
    minutes=30,
    slots={"generation.accept_or_replace": "accept_or_replace"},
    hints=(
        "At a token x the drafts bring q(x), and min(p(x), q(x)) of that is accepted. How much of "
        "p(x) is still missing, and which draw can bring it?",
        "Compare u · q(x) with p(x): no division by zero. The first that fails ends the text: one "
        "draw from what p has more, and return. Only if none fails, one draw from the last p.",
        "for k, x: if u · q[k][x] < p[k][x]: go on\n    else: return drafts before k + [a draw "
        "from max(0, p[k] - q[k])]\nreturn drafts + [a draw from the last p]",
    ),
    wrong={
        "all are accepted": "sampler.random.random() * q[k][token] < p[k][token] → True",
        "none is accepted": "sampler.random.random() * q[k][token] < p[k][token] → False",
        "accepted where p is the larger one": (
            "sampler.random.random() * q[k][token] < p[k][token] → q[k][token] <= p[k][token]"
        ),
        "the other way round": (
            "sampler.random.random() * q[k][token] < p[k][token] → "
            "sampler.random.random() * p[k][token] < q[k][token]"
        ),
        "accepted with probability p": (
            "sampler.random.random() * q[k][token] < p[k][token] → "
            "sampler.random.random() < p[k][token]"
        ),
        "replaced from p": "np.maximum(p[k] - q[k], 0) → p[k]",
        "replaced from q": "np.maximum(p[k] - q[k], 0) → q[k]",
        "replaced from what q has more": (
            "np.maximum(p[k] - q[k], 0) → np.maximum(q[k] - p[k], 0)"
        ),
        "replaced from the distance": "np.maximum(p[k] - q[k], 0) → np.abs(p[k] - q[k])",
        "the replacement comes first": (
            "[*drafts[:k], sampler.draw_from(more)] → [sampler.draw_from(more), *drafts[:k]]"
        ),
        "the likeliest replacement": "sampler.draw_from(more) → int(np.argmax(more))",
        "the refused draft stays": (
            "[*drafts[:k], sampler.draw_from(more)] → [*drafts[:k + 1], sampler.draw_from(more)]"
        ),
        "no replacement": "[*drafts[:k], sampler.draw_from(more)] → drafts[:k]",
        "nothing after the last draft": (
            "[*drafts, sampler.draw_from(p[len(drafts)])] → list(drafts)"
        ),
        "the last of q": "p[len(drafts)] → q[-1]",
    },
)


class Told:
    """A sampler that draws what it is told: numbers u, and always the heaviest token."""

    def __init__(self, numbers):
        self.left, self.weights = list(numbers), []
        self.random = SimpleNamespace(random=lambda: self.left.pop(0))

    def draw_from(self, weights):
        self.weights.append(np.array(weights))
        return int(np.argmax(weights))


def check(yours, drafts, q, p, numbers):
    """One text, draw by draw."""
    told, n = Told([*numbers, 0.5, 0.5]), len(drafts)
    given = {"drafts": list(drafts), "q": [*map(np.array, q)], "p": [*map(np.array, p)],
             "u": list(numbers)}  # fmt: skip
    got = yours.accept_or_replace(drafts, q, p, told)
    q_, p_ = given["q"], given["p"]
    refused = [k for k, x in enumerate(given["drafts"]) if not numbers[k] * q_[k][x] < p_[k][x]]
    at = refused[0] if refused else n
    weights = p_[at] - np.minimum(p_[at], q_[at]) if refused else p_[n]
    expect_that(isinstance(got, list), "this is no list", given=given, got=got)
    expect(len(got), at + 1, given=given, why="how many tokens")
    expect(got[:at], given["drafts"][:at], given=given, why="the drafts that are accepted")
    expect(len(told.weights), 1, given=given, why="draws of a token")
    share = lambda w: np.asarray(w, "float64") / np.sum(w, dtype="float64")
    why = "what the replacement is drawn from" if refused else "what the last token is drawn from"
    expect(share(told.weights[0]), share(weights), given=given, why=why)
    expect(got[at], int(np.argmax(weights)), given=given, why="the last token")
    used = len(numbers) + 2 - len(told.left)
    expect(used, min(at + 1, n), given=given, why="how many numbers u are drawn")
    expect([*map(np.array, q)], q_, given=given, why="q afterwards")
    expect([*map(np.array, p)], p_, given=given, why="p afterwards")
    expect(drafts, given["drafts"], given=given, why="the drafts afterwards")


@exercise.example
def the_examples(yours):
    """The two of the text."""
    q, p = [np.array([0.5, 0.5])], [np.array([0.9, 0.1]), np.array([0.0, 1.0])]
    check(yours, [0], q, p, [0.99])
    check(yours, [1], q, p, [0.19])
    check(yours, [1], q, p, [0.21])


@exercise.example
def exactly_on_the_edge(yours):
    """u · q(x) = p(x) is refused, so that a token p cannot draw never comes."""
    q, p = [np.array([0.5, 0.5])], [np.array([0.75, 0.25]), np.array([0.5, 0.5])]
    check(yours, [1], q, p, [0.5])
    p[0] = np.array([1.0, 0.0])
    check(yours, [1], q, p, [0.0])
    check(yours, [0], [p[0]], [p[0], q[0]], [0.999])
    check(yours, [], [], [p[0]], [])


def distributions(rng, n, vocab):
    """Rows of probabilities, some of them 0."""
    rows = rng.dirichlet(np.ones(vocab), n) * (rng.random((n, vocab)) > 0.2) + 1e-9
    return rows / rows.sum(1, keepdims=True)


@exercise.property(
    examples=60,
    seed=st.integers(0, 9999),
    n=st.integers(0, 9),
    vocab=st.sampled_from([2, 3, 5, 400]),
    alike=st.sampled_from([0.0, 0.5, 0.95]),
    lists=st.booleans(),
)
def any_drafts(yours, seed, n, vocab, alike, lists):
    """None up to nine; models that agree, and models that do not; a large vocabulary."""
    rng = np.random.default_rng(seed)
    p = distributions(rng, n + 1, vocab)
    q = alike * p[:n] + (1 - alike) * distributions(rng, n, vocab)
    drafts = [int(rng.choice(vocab, p=row)) for row in q]
    check(yours, drafts, [*q] if lists else q, [*p] if lists else p, rng.random(n).tolist())


@exercise.example
def as_the_large_model_would(yours):
    """Of 6000 texts the tokens come as often as p says, though the drafts are of q."""
    sampler, count = Sampler(seed=3), 6000
    q, p = np.array([0.1, 0.5, 0.4, 0.0]), np.array([0.4, 0.3, 0.1, 0.2])
    seen = np.zeros(4)
    for _ in range(count):
        draft = sampler.draw_from(q)
        seen[yours.accept_or_replace([draft], [q], [p, p], sampler)[0]] += 1
    off = ((seen - count * p) ** 2 / (count * p)).sum()
    given = {"q": q, "p": p, "expected": count * p}
    expect_that(off < 16.3, "chi-square: this comes once in a thousand", given=given, got=seen)


@cache
def models():
    """A GPT that writes English; the small model is its first block."""
    from minipaddle.hub import load

    large = load(str(Path(__file__).parents[3] / "hub"), "char_gpt", "local", pretrained=True)
    small = paddle.text.GPT(len(large.letters), width=128, layers=1, heads=4, context=128)
    own = large.state_dict()
    small.set_state_dict({name: own[name] for name in small.state_dict()})
    return large, small


@cache
def likeliest(prompt, n):
    """The large model's own text, without a cache."""
    net, text = models()[0], list(prompt)
    with paddle.no_grad():
        for _ in range(n):
            text.append(int(net(paddle.to_tensor([text]))[0, -1].argmax()))
    return text[len(prompt) :]


@exercise.example
def a_model_writes(yours):
    """At temperature 0 the text is the large model's, letter for letter."""
    large, small = models()
    prompt = tuple(large.letters.index(c) for c in "The value of")
    with exercise.plugged(yours):
        pair = Decoder(large, context=32), Decoder(small, context=32)
        found = write_with_draft(*pair, list(prompt), 12, Sampler(0), ahead=3)
    say = lambda tokens: "".join(large.letters[k] for k in tokens)
    expect(say(found), say(likeliest(prompt, 12)), given="The value of", why="the text")
