"""Loads: each in a thread of its own, for as many seconds as it may take."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from .answers import hide_places
from .runner import Refused

LOAD_LIMIT = 300.0
"""Seconds of a load, unless told otherwise."""


def being_loaded() -> Refused:
    """The answer to a request for a model that is not there yet."""
    return Refused(503, "the model is being loaded", 1.0)


def reason(error: Exception, limit: float) -> str:
    """Why a load failed that had `limit` seconds."""
    late = f"it took more than {limit:g} s"
    return late if isinstance(error, TimeoutError) else hide_places(error)


async def beside(limit: float, function: Callable, *args):
    """The result of a function, from a thread of its own. Raises TimeoutError after `limit`
    seconds: then nobody waits for the thread, and neither does the end of the process.
    """
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def settle(result, error):
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run():
        try:
            outcome = function(*args), None
        except BaseException as error:
            takes = isinstance(error, Exception) and not isinstance(error, StopIteration)
            outcome = None, error if takes else RuntimeError(f"it raised {error!r}")
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="beside", daemon=True).start()
    async with asyncio.timeout(limit):
        return await future
