"""Who is let in: by a token, by free places, and always to ask for health."""

import asyncio

import pytest
from starlette.responses import PlainTextResponse

from minipaddle.serving.gate import HEALTH, Gate

from .serving import call


def gate(app, most=2, token=None, ends=lambda: False):
    return Gate(app, most, token, ends)


async def hello(scope, receive, send):
    await PlainTextResponse("hello")(scope, receive, send)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Authorization", "Bearer abc")], 200),
        ([("authorization", "bearer abc")], 200),
        ([], 401),
        ([("Authorization", "Bearer abcd")], 401),
        ([("Authorization", "Bearer ab")], 401),
        ([("Authorization", "Bearer")], 401),
        ([("Authorization", "abc")], 401),
        ([("Authorization", "Basic abc")], 401),
        ([("Authorization", "Bearer äbc")], 401),
        ([("Authorization", "Bearer abc"), ("Authorization", "Bearer abc")], 401),
    ],
)
def test_a_token(headers, status):
    answer = asyncio.run(call(gate(hello, token="abc"), "GET", "/v2", headers=headers))
    assert answer.status == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    for path in HEALTH:
        assert asyncio.run(call(gate(hello, token="abc"), "GET", path)).status == 200


def test_places():
    """Those who are in are counted, also if they fail; health needs no place."""

    async def main():
        go = asyncio.Event()

        async def wait(scope, receive, send):
            if scope["path"] == "/wait":
                await go.wait()
            if scope["path"] == "/fail":
                raise ZeroDivisionError
            await hello(scope, receive, send)

        app = gate(wait)
        with pytest.raises(ZeroDivisionError):
            await call(app, "GET", "/fail")
        waiting = [asyncio.create_task(call(app, "GET", "/wait")) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await call(app, "GET", "/v2")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        for path in HEALTH:
            assert (await call(app, "GET", path)).status == 200
        go.set()
        assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]
        assert (await call(app, "GET", "/v2")).status == 200

    asyncio.run(main())


@pytest.mark.parametrize("ends", [True, False])
def test_those_who_are_cancelled_when_the_server_ends_are_told_so(ends):
    async def forever(scope, receive, send):
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(call(gate(forever, ends=lambda: ends), "GET", "/v2"))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    if ends:
        assert asyncio.run(main()).status == 503
    else:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
