"""Errors as answers: each route is answered, whatever it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .runner import Refused

LARGE = 2**18
"""Fewest bytes of a body that is read, or written, beside the event loop."""


def answering(route: Callable, layout: Callable = lambda status, text: {"error": text}) -> Callable:
    """A route whose errors become answers; `layout` makes the body of a status and a text."""

    async def answer(request: Request) -> Response:
        try:
            return await route(request)
        except Exception as error:
            status, text = explain(error, request.url.path)
            retry = getattr(error, "retry", None)
            after = {} if retry is None else {"Retry-After": str(round(retry))}
            return JSONResponse(layout(status, text), status, headers=after)

    return answer


def explain(error: Exception, path: str) -> tuple[int, str]:
    """The status and the text of an answer. Only the log has faults of the server."""
    if isinstance(error, Refused | ValueError | IndexError):
        return getattr(error, "status", 400), hide_places(error)
    print(f"{type(error).__name__} in {path}: {error}", flush=True)
    return 500, "the server failed; its log says why"


def hide_places(error: Exception) -> str:
    """The text of an error without lines of the server's files, which are no client's business."""
    return "\n".join(line for line in str(error).splitlines() if not line.startswith("  at: "))


async def run_off_loop(size: int, function: Callable, *args):
    """The result of a function that handles `size` bytes; if they are many, a thread computes it,
    and others are answered meanwhile.
    """
    return function(*args) if size < LARGE else await asyncio.to_thread(function, *args)
