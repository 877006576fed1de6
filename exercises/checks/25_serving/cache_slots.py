"""Checks of 25_serving/cache_slots."""

from collections import deque
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.generation import Decoder, Request, Sampler, Scheduler
from minipaddle.generation.scheduler import TextSlot
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Cache slots: which one a new text gets, and what it need not read",
    level="medium",
    minutes=40,
    slots={"generation.count_shared": "count_shared", "generation.admit": "admit"},
    hints=(
        "A busy slot holds the first 40 tokens of your prompt, a free one the first 3. What has to "
        "happen before your text may stand in the free one and start at token 40?",
        "Count what each slot shares, once for each request. The best free one gets the text; the "
        "best of all says how many tokens are shared. Is that more? Then copy.",
        "while somebody waits and a slot is free: take the first; shared = count for each slot\n"
        "mine: the free one with the most, count: the most of all\nif count > mine's: sources = 0, "
        "1, 2 …, but for mine the best one's number; reorder\nheld, unread = the prompt, cut at "
        "count",
    ),
    wrong={
        "the last token is not read": "len(prompt) - 1 → len(prompt)",
        "one token too few": "len(prompt) - 1 → len(prompt) - 2",
        "equal tokens anywhere": "def count_shared(held, prompt):\n"
        "    return sum(a == b for a, b in zip(held, prompt[:-1]))",
        "the last that waits first": "scheduler.waiting.popleft() → scheduler.waiting.pop()",
        "only one gets a slot": (
            "while scheduler.waiting and any((each.request is None for each in slots)): → "
            "if scheduler.waiting and any((each.request is None for each in slots)):"
        ),
        "the first free slot": "max(free, key=lambda each: shared[each.number]) → free[0]",
        "the free slot that shares least": (
            "max(free, key=lambda each: shared[each.number]) → "
            "min(free, key=lambda each: shared[each.number])"
        ),
        "busy slots are not looked at": "max(shared) → shared[mine.number]",
        "nothing is copied": "scheduler.decoder.reorder(sources) → pass",
        "copied without need": "count > shared[mine.number] → True",
        "copied the other way": (
            "sources[mine.number] = shared.index(count) → "
            "sources[shared.index(count)] = mine.number"
        ),
        "all hold the same": ("list(range(len(slots))) → [shared.index(count)] * len(slots)"),
        "everything is read again": (
            "mine.held, mine.unread = (request.prompt[:count], request.prompt[count:]) → "
            "mine.held, mine.unread = [], request.prompt[:]"
        ),
        "the slot holds all of the prompt": (
            "mine.held, mine.unread = (request.prompt[:count], request.prompt[count:]) → "
            "mine.held, mine.unread = request.prompt[:], request.prompt[count:]"
        ),
        "the slot keeps what it held": (
            "mine.held, mine.unread = (request.prompt[:count], request.prompt[count:]) → "
            "mine.unread = request.prompt[count:]"
        ),
        "nothing is noted": (
            "mine.request, request.reused = (request, count) → mine.request = request"
        ),
    },
)


@exercise.example
def the_examples(yours):
    """The three of the text."""
    for held, prompt in (([1, 2, 3], [1, 2, 9]), ([1, 2, 3], [1, 2, 3])):
        given = {"held": held, "prompt": prompt}
        expect(yours.count_shared(held, prompt), 2, given=given)
    check(yours, [[5], [1, 2, 3], []], [1], [[1, 2, 9]])


def common(held, prompt):
    """The oracle of `count_shared`."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(held, prompt[:-1]))])


TOKENS = st.lists(st.integers(0, 2), max_size=9)


@exercise.property(held=TOKENS, prompt=TOKENS.filter(len), more=st.integers(0, 3))
def what_is_shared(yours, held, prompt, more):
    """Short and long ones, of few different tokens; neither is changed."""
    for one, other in ((held, prompt), (prompt + held[:more], prompt), (prompt[:more], prompt)):
        given = {"held": list(one), "prompt": list(other)}
        expected = common(one, other)
        expect(yours.count_shared(one, other), expected, given=given)
        expect([one, other], [given["held"], given["prompt"]], given=given, why="afterwards")


def check(yours, held, busy, prompts):
    """Compare `admit` with the rules, and the cache with what the slots say they hold."""
    slots = [TextSlot(k, list(tokens)) for k, tokens in enumerate(held)]
    others = {k: Request([7]) for k in busy}
    for k, request in others.items():
        slots[k].request = request
    requests = [Request(list(p)) for p in prompts]
    lies, copies = [list(tokens) for tokens in held], []  # what the cache really holds

    def reorder(sources):
        copies.append([int(k) for k in sources])
        expect(len(copies[-1]), len(slots), given=given, why="a source for each slot")
        lies[:] = [list(lies[k]) for k in copies[-1]]

    given = {"slots hold": held, "busy": busy, "prompts": prompts}
    scheduler = SimpleNamespace(
        slots=list(slots), waiting=deque(requests), decoder=SimpleNamespace(reorder=reorder)
    )
    with exercise.plugged(yours):
        yours.admit(scheduler)

    model, free, moves = [list(tokens) for tokens in held], set(range(len(held))) - {*busy}, []
    for request in requests[: len(free)]:
        prompt = request.prompt
        same = [common(tokens, prompt) for tokens in model]
        most, mine = max(same), min(free, key=lambda k: (-same[k], k))
        if most > same[mine]:
            moves.append((mine, most))
        free.remove(mine)
        model[mine] = prompt[:most]
        got = next((s.number for s in slots if s.request is request), None)
        expect(got, mine, given={**given, "prompt": prompt}, why="the number of its slot")
        slot = slots[mine]
        for what, mine_, right in (
            ("reused", request.reused, most), ("held", slot.held, prompt[:most]),
            ("unread", slot.unread, prompt[most:]),
        ):  # fmt: skip
            expect(mine_, right, given={**given, "prompt": prompt}, why=what)
        expect_that(
            lies[mine][:most] == prompt[:most],
            "the cache holds other tokens than the slot says",
            given=given,
            got=lies[mine],
        )
        lists = isinstance(slot.held, list) and isinstance(slot.unread, list)
        expect_that(lists, "held and unread are lists", given=given)
    expect(len(copies), len(moves), given=given, why="how often the cache is copied")
    for sources, (mine, _) in zip(copies, moves, strict=True):
        kept = [k for k, source in enumerate(sources) if k not in (source, mine)]
        expect(kept, [], given=given | {"sources": sources}, why="slots that lose their text")
    for k, request in others.items():
        expect_that(slots[k].request is request, "a busy slot was given away", given=given)
        expect([lies[k], slots[k].held], [held[k]] * 2, given=given, why="what a busy slot holds")
    left = [r.prompt for r in scheduler.waiting]
    expect(left, list(prompts)[len(held) - len(busy) :], given=given, why="who still waits")
    expect([r.prompt for r in requests], list(prompts), given=given, why="the prompts afterwards")


@exercise.property(
    examples=60,
    held=st.lists(TOKENS, min_size=1, max_size=8),
    busy=st.sets(st.integers(0, 7)),
    prompts=st.lists(TOKENS.filter(len), max_size=5),
)
def any_slots(yours, held, busy, prompts):
    """Slots that are free and busy, more requests than slots, prompts with equal beginnings."""
    check(yours, held, sorted(k for k in busy if k < len(held)), prompts)


@exercise.example
def ties(yours):
    """Of equal ones the least number; a busy one that holds as much is no reason to copy."""
    check(yours, [[], [1, 2], [1, 2]], [], [[1, 2, 3]])
    check(yours, [[1, 2], [], [1, 2]], [0], [[1, 2, 3]])
    check(yours, [[1, 2, 3], [1], [1, 2]], [0], [[1, 2, 3, 4], [1, 2, 5], [1, 2]])
    check(yours, [[1] * 30, [], [2] * 9], [0], [[1] * 40, [1] * 25])


@cache
def model():
    """A GPT that writes English letter by letter."""
    from minipaddle.hub import load

    return load(str(Path(__file__).parents[3] / "hub"), "char_gpt", "local", pretrained=True)


@cache
def alone(prompt, n):
    """The likeliest text of the model without a cache."""
    net, text = model(), [model().letters.index(c) for c in prompt]
    with paddle.no_grad():
        for _ in range(n):
            text.append(int(net(paddle.to_tensor([text]))[0, -1].argmax()))
    return "".join(net.letters[k] for k in text[len(prompt) :])


@exercise.example
def a_model_is_served(yours):
    """Four texts in two slots; they begin alike, and each is what it would be alone."""
    net = model()
    prompts = ["The value of ", "The value is ", "The name of", "A"]
    requests = [
        Request([net.letters.index(c) for c in p], 3 + k, Sampler(0)) for k, p in enumerate(prompts)
    ]
    with exercise.plugged(yours):
        scheduler = Scheduler(Decoder(net, slots=2, context=32))
        scheduler.submit(requests[0])
        scheduler.step()  # the first one is read before the others come
        for request in requests[1:]:
            scheduler.submit(request)
        for _ in range(40):
            scheduler.step()
    for request, prompt in zip(requests, prompts, strict=True):
        text = "".join(net.letters[k] for k in request.written)
        expect(text, alone(prompt, request.limit), given={"prompt": prompt}, why="its text")
    reused = np.array([r.reused for r in requests])
    expect(reused, np.array([0, 10, 4, 0]), given={"prompts": prompts}, why="tokens not read")
