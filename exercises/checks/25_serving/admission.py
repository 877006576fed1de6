"""Checks of 25_serving/admission."""

import asyncio
import json
import math
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.serving.app import Server, Settings
from minipaddle.serving.batcher import Batcher, BatchPolicy, BatchRequest, Full
from minipaddle.serving.repository import ServingOptions
from minipaddle.serving.simulator import Costs, simulate

exercise = Exercise(
    title="Admission: who may wait, who has to go, and when to ask again",
    level="easy",
    minutes=20,
    slots={
        "serving.make_room": "make_room",
        "serving.find_late": "find_late",
        "serving.retry_after": "retry_after",
    },
    hints=(
        "Two requests of priority 2 wait, there is no room, and one of priority 2 comes. Who has "
        "waited longer, and who should go?",
        "Compare pairs (priority, number): the largest pair is the least important, and of equal "
        "ones the last. It goes only if its priority is larger than that of the new one.",
        "room: None\nlast = the largest (priority, number)\nnone, or last.priority ≤ priority: "
        "raise Full\nlate: now + cost(rows) > deadline\nretry: max(1.0, rows / largest · seconds / "
        "workers)",
    ),
    wrong={
        "one more than may": "len(waiting) < capacity → len(waiting) <= capacity",
        "nobody goes": "return last → raise Full",
        "nobody is refused": "last is None or last.priority <= priority → last is None",
        "equals push out each other": (
            "last is None or last.priority <= priority → last is None or last.priority < priority"
        ),
        "the most important goes": (
            "(request.priority, request.number) > (last.priority, last.number) → "
            "(request.priority, request.number) < (last.priority, last.number)"
        ),
        "the first of the least important goes": (
            "(request.priority, request.number) > (last.priority, last.number) → "
            "request.priority > last.priority"
        ),
        "the last that came goes": (
            "(request.priority, request.number) > (last.priority, last.number) → "
            "request.number > last.number"
        ),
        "an error if nobody may wait": (
            "last is None or last.priority <= priority → last.priority <= priority"
        ),
        "late at the deadline": (
            "now + cost(request.rows) > request.deadline → "
            "now + cost(request.rows) >= request.deadline"
        ),
        "late only after the deadline": (
            "now + cost(request.rows) > request.deadline → now > request.deadline"
        ),
        "the cost of one row": "cost(request.rows) → cost(1)",
        "those in time": (
            "now + cost(request.rows) > request.deadline → "
            "now + cost(request.rows) <= request.deadline"
        ),
        "whole batches": "rows / largest * seconds → -(-rows // largest) * seconds",
        "workers wait for each other": "rows / largest * seconds / workers → rows / largest * "
        "seconds * workers",
        "at once": "max(1.0, rows / largest * seconds / workers) → "
        "rows / largest * seconds / workers",
        "a second at most": "max(1.0, rows / largest * seconds / workers) → "
        "min(1.0, rows / largest * seconds / workers)",
    },
    unkillable={
        "if last is None or (request.priority, request.number) > (last.priority, last.number): → "
        "if last is None or (request.priority, request.number) >= (last.priority, last.number):": (
            "no two requests have the same number"
        ),
    },
)


def waiting(priorities, shuffle=0):
    """Requests that came in this order, given in another."""
    found = [BatchRequest(1, 0.0, priority=p, number=k) for k, p in enumerate(priorities, 1)]
    return [found[k] for k in np.random.default_rng(shuffle).permutation(len(found))]


def check_room(yours, requests, priority, capacity):
    given = {"waiting: (priority, number)": [r.order for r in requests], "priority": priority,
             "capacity": capacity}  # fmt: skip
    before = list(requests)
    ranked = sorted(requests, key=lambda r: (-r.priority, -r.number))
    right = None
    if len(requests) >= capacity:
        right = ranked[0] if ranked and ranked[0].priority > priority else Full
    try:
        got = yours.make_room(requests, priority, capacity)
    except Full:
        got = Full
    say = lambda x: {None: "None: there is room", Full: "Full"}.get(x) or f"{x.order} goes"
    expect_that(got in (None, Full, *requests), "this is neither None nor one of them", got=got)
    expect(say(got), say(right), given=given, why="who goes: (priority, number)")
    expect_that(requests == before, "those that wait were changed", given=given)


@exercise.example
def the_examples(yours):
    """The three of the text."""
    requests = waiting([1, 2, 2])
    check_room(yours, requests, 1, 3)
    check_room(yours, requests, 2, 3)
    expect(yours.retry_after(64, 16, 2.0, 2), 4.0, given="64 rows, 16 in 2 s, 2 workers")


@exercise.property(
    examples=60,
    priorities=st.lists(st.integers(0, 3), max_size=12),
    shuffle=st.integers(0, 99),
    priority=st.integers(0, 4),
    room=st.integers(-1, 2),
)
def who_goes(yours, priorities, shuffle, priority, room):
    """With room and without; equals, and nobody that waits."""
    requests = waiting(priorities, shuffle)
    check_room(yours, requests, priority, max(0, len(requests) + room))


@exercise.property(
    examples=60,
    requests=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([1.0, 2.0, 3.0, 5.0, math.inf])), max_size=12
    ),
    now=st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0]),
)
def who_is_late(yours, requests, now):
    """Runs of one second for each row; deadlines that are just met, and none."""
    every = [
        BatchRequest(rows, 0.0, deadline=end, number=k) for k, (rows, end) in enumerate(requests)
    ]
    got = yours.find_late(every, now, float)
    expect_that(isinstance(got, list), "this is no list", got=got)
    late = [k for k, (rows, end) in enumerate(requests) if now + rows - end > 0]
    given = {"(rows, deadline)": requests, "now": now, "cost": "a second for each row"}
    expect([r.number for r in got], late, given=given, why="the places of those that are late")


@exercise.property(
    rows=st.integers(0, 500),
    largest=st.integers(1, 32),
    seconds=st.sampled_from([0.0, 0.001, 0.25, 1.0, 8.0]),
    workers=st.integers(1, 4),
)
def when_to_ask_again(yours, rows, largest, seconds, workers):
    """The seconds of a row, times the rows, over the workers; at least one."""
    given = {"rows": rows, "largest": largest, "seconds": seconds, "workers": workers}
    wanted = max(seconds / largest * rows / workers, 1.0)
    got = yours.retry_after(rows, largest, seconds, workers)
    expect(float(got), wanted, given=given, rtol=1e-12, atol=0)


@exercise.example
def on_paper(yours):
    """The engine's queue and its simulator under three times too many requests."""
    with exercise.plugged(yours):
        queue = Batcher(BatchPolicy(8, capacity=2))
        first, last = BatchRequest(1, 0.0, priority=2), BatchRequest(1, 0.0, priority=2)
        queue.add(first)
        queue.add(last)
        room = [queue.has_room(p) for p in (1, 2)]
        removed = queue.add(BatchRequest(1, 0.0, priority=1))
        times = np.arange(300) / 3
        one = simulate(
            times, BatchPolicy(1, capacity=10), Costs(0, 0, 0, lambda n: 1.0), timeout=8.0
        )
    expect(room, [True, False], given="two of priority 2 wait, two may", why="room for 1, for 2")
    expect_that(removed is last, "the last one goes", got=removed and removed.order)
    counts = [len(one.latencies), one.refused, one.late]
    expect(sum(counts), 300, given="answered, refused, late", why="each request once")
    expect_that(max(one.latencies) <= 8.0, "an answer after the deadline", got=max(one.latencies))
    expect_that(min(counts) > 20, "some are answered, some refused, some late", got=counts)


@cache
def folder():
    """A folder with LeNet, as the server wants it, and digits with their labels."""
    from minipaddle.hub import load
    from minipaddle.vision.datasets import Digits

    net = load(str(Path(__file__).parents[3] / "hub"), "lenet_digits", "local", pretrained=True)
    kept = tempfile.TemporaryDirectory()
    spec = paddle.static.InputSpec([None, 1, 8, 8], "float32", "image")
    Path(kept.name, "digits/1").mkdir(parents=True)
    paddle.jit.save(net, f"{kept.name}/digits/1/model", input_spec=[spec])
    return kept, Digits("test")


async def ask(app, image, priority):
    """Status, headers and body of the answer to a request, without a socket."""
    given = {
        "name": "image",
        "shape": [1, 1, 8, 8],
        "datatype": "FP32",
        "data": image.ravel().tolist(),
    }
    body = json.dumps({"inputs": [given], "parameters": {"priority": priority}}).encode()
    parts, sent = [{"type": "http.request", "body": body}], []

    async def receive():
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app({"type": "http", "method": "POST", "path": "/v2/models/digits/infer", "headers": [],
               "query_string": b""}, receive, send)  # fmt: skip
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@exercise.example
def a_model_is_served(yours):
    """Twenty requests at once for a queue of six: six digits are read, the others are refused with
    503 and `Retry-After`.
    """
    kept, data = folder()
    options = ServingOptions(largest=4, window_ms=50, queue=6)

    async def main():
        server = Server(kept.name, Settings(options=options))
        await server.repository.refresh()
        asked = [ask(server.app, x, 1 + (k < 10)) for k, x in enumerate(data.images[:20])]
        found = await asyncio.wait_for(asyncio.gather(*asked), 8)
        await asyncio.wait_for(server.repository.drain(), 5)
        return found

    with exercise.plugged(yours):
        found = asyncio.run(main())
    statuses = [status for status, _, _ in found]
    counted = {status: statuses.count(status) for status in sorted(set(statuses))}
    expect(counted, {200: 6, 503: 14}, given="20 requests at once, 6 may wait", why="the statuses")
    for (status, headers, body), label in zip(found, data.labels, strict=False):
        if status == 200:
            scores = json.loads(body)["outputs"][0]["data"]
            expect(int(np.argmax(scores)), int(label), given="a digit", why="what is read")
        else:
            after = int(headers[b"retry-after"])
            expect_that(after >= 1, "`Retry-After` is less than a second", got=after)
