"""Texts over HTTP: what a client gets is what the model writes alone."""

import asyncio
import json
import threading
import time

import httpx
import pytest
from starlette.applications import Starlette

import minipaddle as paddle
from minipaddle.generation import Decoder, Request, Sampler, Scheduler
from minipaddle.serving.completions import Completions, Stopper
from minipaddle.serving.loading import NamedModels
from minipaddle.serving.runner import Refused
from minipaddle.serving.writer import TextWriter

LETTERS = "\nabcdefg .,hi"


@pytest.fixture(scope="module")
def net():
    paddle.seed(0)
    net = paddle.text.GPT(len(LETTERS), 16, 1, heads=2, context=64)
    for p in net.parameters():
        p.set_value(p * 6)
    return net


@pytest.fixture
def writer(net):
    writer = TextWriter(net, LETTERS, slots=2, capacity=3, backend="interpreter")
    yield writer
    writer.close()
    assert not writer.listeners


def alone(net, prompt: str, n: int, sampler: Sampler) -> str:
    """The text of one request."""
    scheduler = Scheduler(Decoder(net, 1, backend="interpreter"))
    request = Request([LETTERS.index(c) for c in prompt], n, sampler)
    scheduler.submit(request)
    while scheduler.busy:
        scheduler.step()
    return "".join(LETTERS[k] for k in request.written)


def app_of(writer) -> Starlette:
    """The routes of a writer that is there."""
    writers = NamedModels({"gpt": lambda: writer})
    asyncio.run(writers.load())
    return Starlette(routes=Completions(writers).routes)


def asking(writer, *bodies) -> list[httpx.Response]:
    """The answers to requests that are sent at the same time."""

    app = app_of(writer)

    async def send():
        to = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=to, base_url="http://x") as client:
            posts = [client.post("/v1/completions", json={"model": "gpt"} | b) for b in bodies]
            return await asyncio.gather(*posts)

    return asyncio.run(send())


def texts(answer) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["choices"]]


def test_a_text(net, writer):
    expected = alone(net, "abc", 12, Sampler(0))
    (answer,) = asking(writer, {"prompt": "abc", "max_tokens": 12, "temperature": 0})
    assert texts(answer) == [expected]
    body = answer.json()
    assert body["object"] == "text_completion"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["prompt_tokens"] == 3
    assert body["usage"]["completion_tokens"] == 12


def test_many_at_once(net, writer):
    """Several prompts, several texts of each; a seed decides each."""
    bodies = [
        {"prompt": ["ab", "hi."], "n": 2, "max_tokens": 9, "seed": 7},
        {"prompt": "g", "max_tokens": 5, "temperature": 0, "echo": True},
    ]
    first, second = asking(writer, *bodies)
    prompts = ["ab", "ab", "hi.", "hi."]
    assert texts(first) == [alone(net, p, 9, Sampler(seed=7 + k)) for k, p in enumerate(prompts)]
    assert texts(second) == ["g" + alone(net, "g", 5, Sampler(0))]


def test_events(net, writer):
    """The pieces of a stream are the text; the last ones say why it ends, and what it cost."""
    expected = alone(net, "abc", 12, Sampler(0))
    body = {"prompt": "abc", "max_tokens": 12, "temperature": 0, "stream": True}
    (answer,) = asking(writer, body | {"stream_options": {"include_usage": True}})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    *events, usage = map(json.loads, lines[:-1])
    pieces = [each["choices"][0] for each in events]
    assert "".join(each["text"] for each in pieces) == expected
    assert [each["finish_reason"] for each in pieces] == [None] * (len(pieces) - 1) + ["length"]
    assert len(pieces) > 10
    assert usage["usage"]["completion_tokens"] == 12


def test_stop(net, writer):
    """The text ends before the first of the strings, and its slot is free again."""
    whole = alone(net, "abc", 40, Sampler(0))
    stop = whole[6:8]
    (answer,) = asking(
        writer, {"prompt": "abc", "max_tokens": 40, "temperature": 0, "stop": [stop, "zz"]}
    )
    assert texts(answer) == [whole[: whole.index(stop)]]
    assert answer.json()["choices"][0]["finish_reason"] == "stop"
    deadline = time.monotonic() + 10
    while writer.scheduler.busy and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not writer.scheduler.busy


@pytest.mark.parametrize(
    ("pieces", "stop", "shown"),
    [
        (["ab", "cd", "ef"], ["cde"], "ab"),
        (["ab", "cd", "cf"], ["cdcd", "dcf"], "abc"),
        (["a", "a", "b"], ["ab"], "a"),
        (["x", "y"], [], "xy"),
        (["nn", "n", "m"], ["nnm"], "n"),
    ],
)
def test_nothing_of_a_stop_is_shown(pieces, stop, shown):
    stopper, found = Stopper(stop), ""
    for piece in pieces:
        text, ended = stopper.add(piece)
        found += text
        if ended:
            break
    else:
        found += stopper.held
    assert found == shown


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"model": "bert", "prompt": "a"}, 404, "no model 'bert'; there are: gpt"),
        ({"model": []}, 400, "`model` is a list, not a string"),
        ({}, 400, "`prompt` is missing"),
        ({"prompt": ""}, 400, '`prompt` is "", not a string of 1 to 63 letters'),
        ({"prompt": [[1, 2]]}, 400, "`prompt` is a list, not a string"),
        ({"prompt": []}, 400, "or a list of 1 to 1,024 such"),
        ({"prompt": "xyz"}, 400, "the model knows no 'xyz'"),
        ({"prompt": "a" * 64}, 400, "not a string of 1 to 63 letters"),
        ({"prompt": "a", "max_tokens": 0}, 400, "`max_tokens` is 0, not a whole number"),
        ({"prompt": "a", "max_tokens": True}, 400, "`max_tokens` is true"),
        ({"prompt": "a", "n": 1000}, 400, "`n` is 1000"),
        ({"prompt": "a", "n": 6}, 400, "6 texts; at most 5"),
        ({"prompt": "a", "temperature": -1}, 400, "`temperature` is -1, not a number from 0"),
        ({"prompt": "a", "temperature": "hot"}, 400, '`temperature` is "hot"'),
        ({"prompt": "a", "temperature": False}, 400, "`temperature` is false"),
        ({"prompt": "a", "temperature": 10**400}, 400, "not a number from 0"),
        ({"prompt": "a", "top_k": 2.5}, 400, "`top_k` is 2.5, not a whole number from 1 on"),
        ({"prompt": "a", "top_p": 3}, 400, "`top_p` is 3"),
        ({"prompt": "a", "top_p": 0}, 400, "`top_p` is 0, not above 0"),
        ({"prompt": "a", "stop": 3}, 400, "`stop` is 3, not a string"),
        ({"prompt": "a", "stop": ["a"] * 17}, 400, "a list of 1 to 16 such"),
        ({"prompt": "a", "stop": "a" * 257}, 400, "of 1 to 256 letters"),
        ({"prompt": "a", "seed": 1.5}, 400, "`seed` is 1.5"),
        ({"prompt": "a", "echo": 1}, 400, "`echo` is 1, not true or false"),
        ({"prompt": "a", "stream": "yes"}, 400, '`stream` is "yes", not true or false'),
        ({"prompt": "a", "stream_options": "x"}, 400, '`stream_options` is "x", not an object'),
        ({"prompt": "a", "stream_options": {"include_usage": 1}}, 400,
         "`include_usage` of stream_options is 1"),
        ({"prompt": "a", "stream_options": {"usage": True}}, 400, "no parameter 'usage'"),
        ({"prompt": "a", "user": 3}, 400, "`user` is 3"),
        ({"prompt": "a", "logprobs": 3}, 400, "`logprobs` is 3, which is not supported"),
        ({"prompt": "a", "presence_penalty": False}, 400, "`presence_penalty` is false, not a"),
        ({"prompt": "a", "best_of": True}, 400, "`best_of` is true, not a whole number"),
        ({"prompt": "a", "best_of": 2}, 400, "`best_of` is 2, which is not supported"),
        ({"prompt": "a", "lenght": 3}, 400, "no parameter 'lenght'"),
    ],
)  # fmt: skip
def test_errors(writer, body, status, text):
    (answer,) = asking(writer, body)
    assert answer.status_code == status
    assert text in answer.json()["error"]["message"]


def test_what_asks_for_nothing_may_be_said(net, writer):
    body = {"prompt": "abc", "max_tokens": 4, "temperature": 0, "presence_penalty": 0.0,
            "best_of": 1, "logit_bias": {}, "suffix": None, "stop": None, "user": "me"}  # fmt: skip
    (answer,) = asking(writer, body)
    assert texts(answer) == [alone(net, "abc", 4, Sampler(0))]


def test_too_many_at_once(writer):
    answers = asking(writer, *({"prompt": "a", "n": 3, "max_tokens": 60} for _ in range(4)))
    assert {200, 503} == {answer.status_code for answer in answers}
    assert all("retry-after" in a.headers for a in answers if a.status_code == 503)
    assert writer.open == 0


def test_bodies_that_are_none(writer):
    app = app_of(writer)

    async def send(content):
        to = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=to, base_url="http://x") as client:
            return await client.post("/v1/completions", content=content)

    for content in (b"", b"{", b"[1]", b"\xff", b"3", b"null"):
        assert asyncio.run(send(content)).status_code in (400, 404)


def test_a_writer_that_is_not_made(writer, capsys):
    """It has a time; the others are made all the same. It is missed, and so is readiness."""
    writers = NamedModels({"hangs": lambda: time.sleep(1000), "gpt": lambda: writer}, limit=0.2)
    asyncio.run(writers.load())
    assert not writers.ready()
    assert writers.get("gpt") is writer
    with pytest.raises(Refused, match="no model 'hangs'; there are: gpt"):
        writers.get("hangs")
    assert capsys.readouterr().out == "hangs was not loaded: it took more than 0.2 s\n"


def test_a_step_that_fails(net, writer, monkeypatch):
    """All who wait are told; the next request is answered."""
    step, failed = writer.scheduler.step, threading.Event()

    def fail():
        if not failed.is_set():
            failed.set()
            raise RuntimeError("no memory")
        return step()

    monkeypatch.setattr(writer.scheduler, "step", fail)
    body = {"prompt": "abc", "max_tokens": 4, "temperature": 0}
    (answer,) = asking(writer, body)
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "no memory"
    (answer,) = asking(writer, body)
    assert texts(answer) == [alone(net, "abc", 4, Sampler(0))]


def test_an_error_of_one_text_ends_it_alone(net, writer, monkeypatch):
    """Of three texts the second one cannot be drawn; the others, and those of others, go on."""
    draw = Sampler.draw

    def fail(self, scores):
        if self.seed == 8:
            raise RuntimeError("no dice")
        return draw(self, scores)

    init = Sampler.__init__

    def remember(self, *args):
        init(self, *args)
        self.seed = args[-1]

    monkeypatch.setattr(Sampler, "__init__", remember)
    monkeypatch.setattr(Sampler, "draw", fail)
    body = {"prompt": "abc", "max_tokens": 5, "n": 3, "seed": 7}
    other = {"prompt": "hi", "max_tokens": 9, "seed": 1}
    first, second = asking(writer, body, other)
    assert texts(second) == [alone(net, "hi", 9, Sampler(1.0, None, None, 1))]
    choices = first.json()["choices"]
    assert [each["finish_reason"] for each in choices] == ["length", "error", "length"]
    assert choices[1]["error"]["message"] == "no dice"
    for k in (0, 2):
        assert choices[k]["text"] == alone(net, "abc", 5, Sampler(1.0, None, None, 7 + k))
    (answer,) = asking(writer, body | {"stream": True})
    lines = [line[6:] for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line)["choices"][0] for line in lines[:-1]]
    ends = {each["index"]: each["finish_reason"] for each in events if each["finish_reason"]}
    assert ends == {0: "length", 1: "error", 2: "length"}
    (answer,) = asking(writer, body | {"n": 1, "seed": 8, "stream": True})
    assert json.loads(answer.text.split("\n\n")[-2][6:])["error"]["message"] == "no dice"


def test_a_step_that_does_not_end(net, monkeypatch):
    """All who wait are told, and who comes; when it has ended, the next request is answered."""
    writer, go = (
        TextWriter(net, LETTERS, slots=2, backend="interpreter", limit=0.05),
        threading.Event(),
    )
    step = writer.scheduler.step
    monkeypatch.setattr(writer.scheduler, "step", lambda: go.wait(30) and step())
    body = {"prompt": "abc", "max_tokens": 4, "temperature": 0}
    (answer,) = asking(writer, body)
    assert answer.status_code == 504
    assert writer.hangs
    (answer,) = asking(writer, body)
    assert answer.status_code == 503
    go.set()
    deadline = time.monotonic() + 20
    while writer.hangs and time.monotonic() < deadline:
        time.sleep(0.01)
    monkeypatch.setattr(writer.scheduler, "step", step)
    writer.limit = 60
    (answer,) = asking(writer, body)
    assert texts(answer) == [alone(net, "abc", 4, Sampler(0))]
    writer.close()


def test_a_client_that_goes_away_frees_its_slot(writer):
    async def leave():
        request = Request([1, 2], 60, Sampler(0))
        tokens = writer.write(request)
        for _ in range(3):
            await anext(tokens)
        await tokens.aclose()
        return request

    request = asyncio.run(leave())
    deadline = time.monotonic() + 10
    while request.finish is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert request.finish == "cancelled"
    assert len(request.written) < 60
    assert writer.open == 0
