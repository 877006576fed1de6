"""Who is let in: an ASGI middleware before all routes.

Whether the server lives and is ready, anybody may ask, however busy it is: a machine that asks this
must get an answer. All else takes the token, if the server has one, and a place among the requests
that are answered at the same time.
"""

import asyncio
import hmac
from collections.abc import Callable

from starlette.responses import JSONResponse

HEALTH = {"/v2/health/live", "/v2/health/ready"}
RETRY = {"Retry-After": "1"}


class Gate:
    """app: what is behind the gate; most: requests at the same time; token: what a client sends as
    `Authorization: Bearer TOKEN`, None if it need not; ends: whether the server ends
    """

    def __init__(self, app, most: int, token: str | None, ends: Callable[[], bool]):
        self.app, self.most, self.inside, self.ends = app, most, 0, ends
        self.token = None if token is None else token.encode()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH:
            await self.app(scope, receive, send)
        elif not self.knows(scope["headers"]):
            refusal = answer(
                "the token is missing, or another one", 401, {"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
        elif self.inside >= self.most:
            refusal = answer(f"{self.inside} requests are answered already", 503, RETRY)
            await refusal(scope, receive, send)
        else:
            await self.enter(scope, receive, send)

    def knows(self, headers: list) -> bool:
        """Whether a request has the token. How long the comparison takes says nothing about it."""
        if self.token is None:
            return True
        values = [value for name, value in headers if name == b"authorization"]
        scheme, _, token = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
        same = hmac.compare_digest(token.strip(), self.token)
        return same and scheme.lower() == b"bearer"

    async def enter(self, scope, receive, send) -> None:
        """Let a request in; one that is cancelled, for the server ends, is told so."""
        started = False

        async def note(message):
            nonlocal started
            started = True
            await send(message)

        self.inside += 1
        try:
            await self.app(scope, receive, note)
        except asyncio.CancelledError:
            if started or not self.ends():
                raise
            await answer("the server ends", 503, RETRY)(scope, receive, send)
        finally:
            self.inside -= 1


def answer(message: str, status: int, headers: dict) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)
