"""Texts behind HTTP, as OpenAI's clients ask for them: `/v1/completions`, whole or as events.

One thread owns the scheduler and takes its steps; requests reach it, and tokens leave it, through
queues. A client that goes away frees its slot before the next token.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..generation import Decoder, Request, Sampler, Scheduler
from .runner import Refused

DEFAULTS = {
    "prompt": None, "model": None, "max_tokens": 16, "temperature": 1.0, "top_p": 1.0,
    "top_k": None, "n": 1, "stream": False, "stop": None, "seed": None, "echo": False, "user": None,
    "stream_options": None,
}  # fmt: skip
"""What a request may say, and what holds if it does not."""

NEUTRAL = {"presence_penalty": 0, "frequency_penalty": 0, "logprobs": None, "suffix": None,
           "logit_bias": None, "best_of": 1}  # fmt: skip
"""What a request may say only so: it asks for nothing."""


class Writer:
    """A model that writes texts, and the thread that runs it.

    letters: token k stands for `letters[k]`
    slots: texts at a time; capacity: requests that may wait besides
    """

    def __init__(self, net, letters: str, slots: int = 8, capacity: int = 64, backend=None):
        self.letters, self.numbers = letters, {c: k for k, c in enumerate(letters)}
        self.scheduler, self.capacity = Scheduler(Decoder(net, slots, backend=backend)), capacity
        self.calls: queue.SimpleQueue = queue.SimpleQueue()
        self.listeners: dict[Request, object] = {}
        self.open = 0  # requests between their arrival and their last token
        self.thread = threading.Thread(target=self.work, name="writer", daemon=True)
        self.thread.start()

    @property
    def context(self) -> int:
        return self.scheduler.decoder.context

    def encode(self, text: str) -> list[int]:
        """The tokens of a text. Raises Refused for a letter that the model does not know."""
        unknown = sorted({c for c in text if c not in self.numbers})
        if unknown:
            raise Refused(400, f"the model knows no {''.join(unknown[:8])!r}")
        return [self.numbers[c] for c in text]

    def work(self) -> None:
        """Take what was asked for, then a step; without requests, wait."""
        scheduler = self.scheduler
        while True:
            while not self.calls.empty() or not scheduler.busy:
                call = self.calls.get()
                if call is None:
                    return
                call()
            try:
                events = scheduler.step()
            except Exception as error:
                for request in [*self.listeners]:
                    scheduler.cancel(request)
                    self.tell(request, error)
                continue
            for request, token in events:
                self.tell(request, token)

    def tell(self, request: Request, event) -> None:
        """Hand a token, or an error, to the one who waits for it."""
        listener = self.listeners.get(request)
        if request.finish:
            self.listeners.pop(request, None)
        if listener:
            listener(event, request.finish)

    async def write(self, request: Request) -> AsyncIterator[int]:
        """The tokens of a text as they are written. If nobody asks for more, the text ends."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue()

        def listen(event, finish):
            with suppress(RuntimeError):  # the loop has ended: nobody listens
                loop.call_soon_threadsafe(events.put_nowait, (event, finish))

        def begin():
            self.listeners[request] = listen
            try:
                self.scheduler.submit(request)
            except ValueError as error:
                request.finish = "error"
                self.tell(request, error)

        def end():
            self.listeners.pop(request, None)
            self.scheduler.cancel(request)

        self.open += 1
        self.calls.put(begin)
        try:
            finish = None
            while finish is None:
                event, finish = await events.get()
                if isinstance(event, Exception):
                    raise event
                if event is not None:
                    yield event
        finally:
            self.open -= 1
            if request.finish is None:
                self.calls.put(end)

    def close(self) -> None:
        """End the thread after its step."""
        self.calls.put(None)
        self.thread.join()


class Asked(NamedTuple):
    """A request for completions, checked."""

    prompts: list[str]
    limit: int
    count: int
    stop: list[str]
    echo: bool
    stream: bool
    usage: bool
    samplers: list[Sampler]


def read_request(data: dict, writer: Writer) -> Asked:
    """What a body asks for. Raises Refused for what it may not."""
    if not isinstance(data, dict):
        raise Refused(400, "the body is no JSON object")
    for name, value in data.items():
        if name in NEUTRAL and value not in (NEUTRAL[name], None):
            raise Refused(400, f"{name}={value!r} is not supported")
        if name not in DEFAULTS and name not in NEUTRAL:
            raise Refused(400, f"there is no parameter {name!r}")
    given = DEFAULTS | {name: data[name] for name in data if data[name] is not None}
    prompts = given["prompt"]
    prompts = prompts if isinstance(prompts, list) else [prompts]
    if not prompts or not all(isinstance(p, str) and p for p in prompts):
        raise Refused(400, "prompt is no text, or list of texts, of one letter or more")
    for name, least, most in (("max_tokens", 1, writer.context), ("n", 1, 64)):
        value = given[name]
        if type(value) is not int or not least <= value <= most:
            raise Refused(400, f"{name}={value!r} is no whole number from {least} to {most}")
    stop = given["stop"] or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(s, str) and s for s in stop):
        raise Refused(400, "stop is no text, or list of texts, of one letter or more")
    longest = max(map(len, prompts)) + 1
    if longest > writer.context:
        most = writer.context - 1
        raise Refused(400, f"a prompt has {longest - 1} letters; the model reads at most {most}")
    count, seed = len(prompts) * given["n"], given["seed"]
    if seed is not None and type(seed) is not int:
        raise Refused(400, f"seed={seed!r} is no whole number")
    if writer.open + count > len(writer.scheduler.slots) + writer.capacity:
        raise Refused(503, "too many texts wait; try again later", 1.0)
    try:
        samplers = [
            Sampler(given["temperature"], given["top_k"], given["top_p"],
                    None if seed is None else abs(seed) + k)
            for k in range(count)
        ]  # fmt: skip
    except (ValueError, TypeError) as error:
        raise Refused(400, str(error).splitlines()[0]) from None
    usage = bool((given["stream_options"] or {}).get("include_usage"))
    return Asked(prompts, given["max_tokens"], given["n"], stop, bool(given["echo"]),
                 bool(given["stream"]), usage, samplers)  # fmt: skip


class Stopper:
    """Cuts a text before the first of some strings, and holds back what may be the start of one."""

    def __init__(self, stop: list[str]):
        self.stop, self.held = stop, ""

    def add(self, text: str) -> tuple[str, bool]:
        """What may be shown now, and whether the text ends here."""
        self.held += text
        found = [at for s in self.stop if (at := self.held.find(s)) >= 0]
        if found:
            shown, self.held = self.held[: min(found)], ""
            return shown, True
        keep = max(
            (n for s in self.stop for n in range(1, len(s)) if self.held.endswith(s[:n])), default=0
        )
        cut = len(self.held) - keep
        shown, self.held = self.held[:cut], self.held[cut:]
        return shown, False


class Completions:
    """The routes of some writers, by the names of their models; `body` reads a request's."""

    def __init__(self, writers: dict[str, Writer], body=HTTPRequest.body):
        self.writers, self.body, self.began = writers, body, int(time.time())
        self.routes = [
            Route("/v1/models", self.models),
            Route("/v1/completions", self.complete, methods=["POST"]),
        ]

    async def models(self, request: HTTPRequest) -> Response:
        found = [
            {"id": name, "object": "model", "created": self.began, "owned_by": "minipaddle"}
            for name in self.writers
        ]
        return JSONResponse({"object": "list", "data": found})

    async def complete(self, http: HTTPRequest) -> Response:
        try:
            try:
                data = json.loads(await self.body(http))
            except (ValueError, RecursionError):
                raise Refused(400, "the body is no JSON") from None
            name = data.get("model") if isinstance(data, dict) else None
            if name not in self.writers:
                known = ", ".join(self.writers)
                raise Refused(404, f"there is no model {name!r:.110}; there are: {known}")
            writer = self.writers[name]
            asked = read_request(data, writer)
            requests = [
                Request(writer.encode(asked.prompts[k // asked.count]), asked.limit, sampler)
                for k, sampler in enumerate(asked.samplers)
            ]
        except Refused as error:
            after = {} if error.retry is None else {"Retry-After": str(round(error.retry))}
            return JSONResponse(problem(error), error.status, headers=after)
        head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion",
                "created": int(time.time()), "model": name}  # fmt: skip
        if asked.stream:
            events = self.events(head, writer, asked, requests)
            return StreamingResponse(events, media_type="text/event-stream")
        try:
            texts = await gather([self.text(writer, asked, r) for r in requests])
        except ExceptionGroup as group:
            return JSONResponse(problem(group.exceptions[0]), 500)
        choices = [choice(k, *each) for k, each in enumerate(texts)]
        return JSONResponse(head | {"choices": choices, "usage": usage(requests)})

    async def pieces(self, writer: Writer, asked: Asked, request: Request):
        """(text, why it ends or None) as they come."""
        if asked.echo:
            yield "".join(writer.letters[k] for k in request.prompt), None
        stopper, tokens = Stopper(asked.stop), writer.write(request)
        try:
            async for token in tokens:
                text, stopped = stopper.add(writer.letters[token])
                if stopped:
                    yield text, "stop"
                    return
                if text:
                    yield text, None
        finally:
            await tokens.aclose()
        yield stopper.held, request.finish

    async def text(self, writer: Writer, asked: Asked, request: Request) -> tuple[str, str]:
        """The whole text, and why it ends."""
        pieces = [piece async for piece in self.pieces(writer, asked, request)]
        return "".join(text for text, _ in pieces), pieces[-1][1]

    async def events(
        self, head: dict, writer: Writer, asked: Asked, requests
    ) -> AsyncIterator[str]:
        """The server-sent events of all texts, as they come."""
        pieces: asyncio.Queue = asyncio.Queue()

        async def run(k, request):
            try:
                async for text, finish in self.pieces(writer, asked, request):
                    pieces.put_nowait((k, text, finish))
            except Exception as error:
                pieces.put_nowait((k, error, "error"))

        tasks = [asyncio.create_task(run(k, request)) for k, request in enumerate(requests)]
        try:
            left = len(tasks)
            while left:
                k, text, finish = await pieces.get()
                left -= finish is not None
                if isinstance(text, Exception):
                    yield event(problem(text))
                    return
                yield event(head | {"choices": [choice(k, text, finish)]})
            if asked.usage:
                yield event(head | {"choices": [], "usage": usage(requests)})
            yield "data: [DONE]\n\n"
        finally:
            for task in tasks:
                task.cancel()


async def gather(coroutines) -> list:
    """All results; if one fails, or nobody waits any more, the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in coroutines]
    return [task.result() for task in tasks]


def event(data: dict) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def choice(k: int, text: str, finish: str | None) -> dict:
    return {"index": k, "text": text, "logprobs": None, "finish_reason": finish}


def usage(requests: list[Request]) -> dict:
    read, written = (sum(len(getattr(r, n)) for r in requests) for n in ("prompt", "written"))
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": sum(r.reused for r in requests)},
    }


def problem(error: Exception) -> dict:
    """What a client is told of an error."""
    status = getattr(error, "status", 500)
    kind = {404: "not_found_error", 503: "overloaded_error", 500: "server_error"}.get(status)
    kind = kind or "invalid_request_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": status}}
