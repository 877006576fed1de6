"""Texts that join and leave a batch are what each would be alone."""

import numpy as np
import pytest

from minipaddle.generation import Decoder, Request, Sampler, Scheduler

from .test_decoder import CONTEXT, WORDS, gpt, tokens, whole

NET = gpt(seed=4)


def greedy(prompt, limit, end=()) -> tuple[list, str]:
    """The text of the model alone, without a cache, and why it ends."""
    found = []
    while True:
        token = int(whole(NET, [*prompt, *found])[-1].argmax())
        if token in end:
            return found, "stop"
        found.append(token)
        if len(found) == limit or len(prompt) + len(found) == CONTEXT:
            return found, "length"


def finished(scheduler) -> list:
    events = []
    while scheduler.busy:
        events += scheduler.step()
    return events


@pytest.mark.parametrize("seed", range(4))
def test_random_requests(seed):
    """Prompts with common beginnings come at random times, for slots that are too few."""
    rng = np.random.default_rng(seed)
    stems = tokens(3, 8, seed=seed).tolist()
    scheduler = Scheduler(
        Decoder(NET, slots=int(rng.integers(1, 5))), piece=int(rng.integers(1, 6))
    )
    requests, events = [], []
    while len(requests) < 12 or scheduler.busy:
        if len(requests) < 12 and rng.random() < 0.4:
            stem = stems[rng.integers(3)][: rng.integers(1, 9)]
            prompt = [*stem, *rng.integers(0, WORDS, rng.integers(0, 6)).tolist()]
            end = (int(rng.integers(0, WORDS)),) if rng.random() < 0.5 else ()
            requests.append(Request(prompt, int(rng.integers(1, 9)), Sampler(0), end))
            scheduler.submit(requests[-1])
        events += scheduler.step()
    for request in requests:
        expected = greedy(request.prompt, request.limit, request.end)
        assert (request.written, request.finish) == expected
        told = [token for other, token in events if other is request]
        assert told == request.written + [None] * (request.finish == "stop")


def test_a_common_beginning_is_read_once():
    """From the slot that held it, or copied from one that is in use."""
    stem = tokens(10).tolist()
    scheduler = Scheduler(Decoder(NET, slots=2))
    one = Request(stem, 2, Sampler(0))
    scheduler.submit(one)
    finished(scheduler)
    two, three = (Request([*stem[:8], k], 3, Sampler(0)) for k in (1, 2))
    scheduler.submit(two)
    scheduler.submit(three)
    finished(scheduler)
    assert [each.reused for each in (one, two, three)] == [0, 8, 8]
    again = Request(stem, 2, Sampler(0))
    scheduler.submit(again)
    finished(scheduler)
    assert again.reused >= 8
    for each in (one, two, three, again):
        assert each.written == greedy(each.prompt, each.limit)[0]


def test_a_long_prompt_holds_up_nobody():
    """While it is read in pieces, the other text gets a token in each step."""
    scheduler = Scheduler(Decoder(NET, slots=2), piece=2)
    first, late = (
        Request([1], 12, Sampler(0)),
        Request(tokens(10).tolist(), 2, Sampler(0)),
    )
    scheduler.submit(first)
    scheduler.step()
    scheduler.submit(late)
    for n in range(2, 7):
        scheduler.step()
        assert len(first.written) == n
    assert len(late.written) == 1
    finished(scheduler)
    assert first.written == greedy([1], 12)[0]
    assert late.written == greedy(late.prompt, 2)[0]


def test_a_seed_decides_whatever_runs_beside():
    def drawn(others):
        scheduler = Scheduler(Decoder(NET, slots=4))
        mine = Request([1, 2], 8, Sampler(seed=5))
        for k in range(others):
            scheduler.submit(Request([k], 6, Sampler(seed=k)))
        scheduler.submit(mine)
        finished(scheduler)
        return mine.written

    assert drawn(0) == drawn(2) == drawn(6)


def test_cancel():
    scheduler = Scheduler(Decoder(NET, slots=1))
    one, two = Request([1], 8, Sampler(0)), Request([2], 3, Sampler(0))
    scheduler.submit(one)
    scheduler.submit(two)
    scheduler.step()
    scheduler.cancel(one)
    finished(scheduler)
    assert (one.finish, two.finish) == ("cancelled", "length")
    assert two.written == greedy([2], 3)[0]
    three = Request([3], 3)
    scheduler.submit(three)
    scheduler.cancel(three)
    assert three.finish == "cancelled"
    assert not scheduler.busy


class Broken(Sampler):
    """Cannot draw the third token."""

    count = 0

    def draw(self, scores):
        self.count += 1
        if self.count == 3:
            raise RuntimeError("no dice")
        return super().draw(scores)


def test_an_error_of_a_sampler_ends_its_text_alone():
    scheduler = Scheduler(Decoder(NET, slots=3))
    requests = [Request([k], 6, Sampler(0)) for k in (1, 2)]
    broken = Request([3], 6, Broken(0))
    for request in (requests[0], broken, requests[1]):
        scheduler.submit(request)
    events = finished(scheduler)
    assert (broken.finish, str(broken.error), len(broken.written)) == ("error", "no dice", 2)
    assert events.count((broken, None)) == 1
    for request in requests:
        assert (request.written, request.finish) == greedy(request.prompt, 6)


def test_an_error_of_a_step_ends_the_text_that_is_to_blame(monkeypatch):
    """A run over several texts fails, and of the runs of one text only that of the guilty one."""
    scheduler = Scheduler(Decoder(NET, slots=3))
    requests = [Request([k], 6, Sampler(0)) for k in (1, 2, 3)]
    for request in requests:
        scheduler.submit(request)
    for _ in range(4):
        scheduler.step()
    decoder = scheduler.decoder
    scores = decoder.scores

    def fail(tokens, slots, starts):
        if isinstance(slots, int) or slots == [1]:
            raise RuntimeError("no memory")
        return scores(tokens, slots, starts)

    monkeypatch.setattr(decoder, "scores", fail)
    finished(scheduler)
    assert [each.finish for each in requests] == ["length", "error", "length"]
    for request in (requests[0], requests[2]):
        assert request.written == greedy(request.prompt, 6)[0]


def test_nan_of_one_text_reaches_no_other():
    """Neither beside it, nor later in its slot. Scores are NaN once a text has the last word."""
    net, bad = gpt(seed=4, tied=False), WORDS - 1
    table = net.tokens.weight.numpy().copy()
    table[bad] = np.nan
    net.tokens.weight.set_value(table)

    def write(scheduler, *prompts):
        requests = [Request([*prompt], 5, Sampler(0)) for prompt in prompts]
        for request in requests:
            scheduler.submit(request)
        finished(scheduler)
        return requests

    def alone(prompt):
        return write(Scheduler(Decoder(net)), prompt)[0].written

    prompts = [[k] for k in range(bad) if bad not in alone([k])]
    assert len(prompts) > 2
    scheduler = Scheduler(Decoder(net, slots=2), piece=3)
    good, broken = write(scheduler, prompts[0], [2, bad, 3, 4, 1])
    assert (broken.finish, broken.written) == ("error", [])
    assert "next tokens is nan" in str(broken.error)
    for request in [good, *write(scheduler, *prompts), *write(scheduler, *prompts)]:
        assert (request.written, request.finish) == (alone(request.prompt), "length")


def test_errors():
    scheduler = Scheduler(Decoder(NET))
    with pytest.raises(ValueError, match="empty prompt"):
        scheduler.submit(Request([]))
    with pytest.raises(ValueError, match="at most context=16"):
        scheduler.submit(Request(tokens(16).tolist()))
