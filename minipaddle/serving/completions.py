"""Texts behind HTTP, as OpenAI's clients ask for them: `/v1/completions`, whole or as events."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import NamedTuple

from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..generation import Request, Sampler
from .answers import answering, hide_places, run_off_loop
from .loading import NamedModels
from .parameters import (
    MOST,
    BadRequest,
    mapping,
    number,
    parse,
    read,
    refuse,
    text,
    texts,
    truth,
    whole,
)  # fmt: skip
from .writer import TextWriter

STOPS = 16
"""The most strings that may end a text."""
PARAMETERS = {
    "model": text(), "n": whole(1, 64, 1), "seed": whole(-MOST), "user": text(),
    "temperature": number(0, 1e6, 1.0), "top_k": whole(1), "top_p": number(0, 1, 1.0),
    "stop": texts(STOPS, 256), "echo": truth(), "stream": truth(), "stream_options": mapping(),
    "presence_penalty": refuse(number(-2, 2), 0),
    "frequency_penalty": refuse(number(-2, 2), 0), "logprobs": refuse(whole(0, 5)),
    "suffix": refuse(text(), ""), "logit_bias": refuse(mapping(), {}),
    "best_of": refuse(whole(1, 64), 1),
}  # fmt: skip
"""The fields of a request that do not depend on the model; the last ones only so that they ask for
nothing."""
STREAM_OPTIONS = {"include_usage": truth(), "include_obfuscation": refuse(truth(), False)}


class Asked(NamedTuple):
    """A request for completions, checked."""

    requests: list[Request]
    stop: list[str]
    echo: bool
    stream: bool
    usage: bool


def read_request(data: dict, writer: TextWriter) -> Asked:
    """The request in a body; its texts count as open from now on. Raises BadRequest or Refused for
    what it may not ask for.
    """
    own = {"prompt": texts(1024, writer.context - 1), "max_tokens": whole(1, writer.context, 16)}
    body = read(data, PARAMETERS | own)
    options = read(body["stream_options"], STREAM_OPTIONS, "stream_options")
    if not body["prompt"]:
        raise BadRequest("the parameter `prompt` is missing")
    if body["top_p"] == 0:
        raise BadRequest("`top_p` is 0, not above 0")
    prompts, count, seed = as_list(body["prompt"]), body["n"], body["seed"]
    writer.require_room(len(prompts) * count)
    how = body["temperature"], body["top_k"], body["top_p"]
    tokens = [tokens for prompt in prompts for tokens in [writer.encode(prompt)] * count]
    requests = [
        Request(prompt, body["max_tokens"], Sampler(*how, None if seed is None else abs(seed) + k))
        for k, prompt in enumerate(tokens)
    ]
    writer.promised.update(requests)
    return Asked(
        requests, as_list(body["stop"]), body["echo"], body["stream"], options["include_usage"]
    )


def as_list(given) -> list[str]:
    """One string, or several, as a list."""
    return [given] if isinstance(given, str) else [*given]


class Stopper:
    """Cuts a text before the first of some strings, and holds back what may be the start of one."""

    def __init__(self, stop: list[str]):
        self.stop, self.held = stop, ""

    def add(self, text: str) -> tuple[str, bool]:
        """The text that may be shown now, and whether it ends here."""
        self.held += text
        positions = [at for s in self.stop if (at := self.held.find(s)) >= 0]
        if positions:
            shown, self.held = self.held[: min(positions)], ""
            return shown, True
        keep = max(
            (n for s in self.stop for n in range(1, min(len(s), len(self.held) + 1))
             if self.held.endswith(s[:n])), default=0,
        )  # fmt: skip
        cut = len(self.held) - keep
        shown, self.held = self.held[:cut], self.held[cut:]
        return shown, False


class Completions:
    """The routes of some writers; `body` reads a request's."""

    def __init__(self, writers: NamedModels, body=HTTPRequest.body):
        self.writers, self.body, self.began = writers, body, int(time.time())
        self.routes = [
            Route("/v1/models", self.models),
            Route("/v1/completions", answering(self.complete, layout), methods=["POST"]),
        ]

    async def models(self, request: HTTPRequest) -> Response:
        models = [
            {"id": name, "object": "model", "created": self.began, "owned_by": "minipaddle"}
            for name in self.writers.loaded
        ]
        return JSONResponse({"object": "list", "data": models})

    async def complete(self, http: HTTPRequest) -> Response:
        body = await self.body(http)
        data = await run_off_loop(len(body), parse, body)
        name = read(data, {"model": PARAMETERS["model"]}, closed=False)["model"]
        writer = self.writers.get(name)
        asked = read_request(data, writer)
        head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion",
                "created": int(time.time()), "model": name}  # fmt: skip
        if asked.stream:
            events = self.events(head, writer, asked)
            return StreamingResponse(events, media_type="text/event-stream")
        texts = await gather([self.text(writer, asked, r) for r in asked.requests])
        errors = [error for *_, error in texts if error]
        if len(errors) == len(texts):
            told = problem(errors[0])
            return JSONResponse(told, told["error"]["code"])
        choices = [choice(k, *each) for k, each in enumerate(texts)]
        return JSONResponse(head | {"choices": choices, "usage": usage(asked.requests)})

    async def pieces(
        self, writer: TextWriter, asked: Asked, request: Request
    ) -> AsyncIterator[tuple]:
        """(text, why it ends or None, the error if it ends by one) as they come."""
        if asked.echo:
            yield "".join(writer.letters[k] for k in request.prompt), None, None
        stopper, tokens = Stopper(asked.stop), writer.write(request)
        try:
            async for token in tokens:
                text, stopped = stopper.add(writer.letters[token])
                if stopped:
                    yield text, "stop", None
                    return
                if text:
                    yield text, None, None
        except Exception as error:
            print(f"{type(error).__name__} in a text: {error}", flush=True)
            yield stopper.held, "error", error
            return
        finally:
            await tokens.aclose()
        yield stopper.held, request.finish, None

    async def text(self, writer: TextWriter, asked: Asked, request: Request) -> tuple:
        """The whole text, why it ends, and the error if it ends by one."""
        pieces = [piece async for piece in self.pieces(writer, asked, request)]
        return "".join(text for text, *_ in pieces), *pieces[-1][1:]

    async def events(self, head: dict, writer: TextWriter, asked: Asked) -> AsyncIterator[str]:
        """The server-sent events of all texts, as they come."""
        pieces: asyncio.Queue = asyncio.Queue()

        async def run(k, request):
            async for piece in self.pieces(writer, asked, request):
                pieces.put_nowait((k, *piece))

        tasks = [asyncio.create_task(run(k, request)) for k, request in enumerate(asked.requests)]
        try:
            left, errors = len(tasks), []
            while left:
                k, text, finish, error = await pieces.get()
                left -= finish is not None
                errors += [error] if error else []
                yield event(head | {"choices": [choice(k, text, finish, error)]})
            if len(errors) == len(tasks):
                yield event(problem(errors[0]))
                return
            if asked.usage:
                yield event(head | {"choices": [], "usage": usage(asked.requests)})
            yield "data: [DONE]\n\n"
        finally:
            for task in tasks:
                task.cancel()


async def gather(coroutines) -> list:
    """All results; if nobody waits any more, they are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in coroutines]
    return [task.result() for task in tasks]


def event(data: dict) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def choice(k: int, text: str, finish: str | None, error: Exception | None = None) -> dict:
    answer = {"index": k, "text": text, "logprobs": None, "finish_reason": finish}
    return answer | (problem(error) if error else {})


def usage(requests: list[Request]) -> dict:
    read, written = (sum(len(getattr(r, n)) for r in requests) for n in ("prompt", "written"))
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": sum(r.reused for r in requests)},
    }


def problem(error: Exception) -> dict:
    """The words to a client about the error that ended a text."""
    return layout(getattr(error, "status", 500), hide_places(error))


def layout(status: int, message: str) -> dict:
    """An error as OpenAI's clients read it."""
    kind = {404: "not_found_error", 503: "overloaded_error"}.get(
        status, "server_error" if status >= 500 else "invalid_request_error"
    )
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}
