"""Loads: each in a thread of its own, for as many seconds as it may take."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

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


class NamedModels:
    """Models that programs make: those that write texts, or read pictures.

    makers: by name what makes each; limit: seconds of a load
    loaded: those that are there; coming: those that are loaded, or will be
    """

    def __init__(self, makers: dict[str, Callable[[], Any]], limit: float = LOAD_LIMIT):
        self.makers, self.limit = makers, limit
        self.loaded: dict[str, Any] = {}
        self.coming = {*makers}

    async def load(self) -> None:
        """Load all, one after the other: they are programs, and may import others. One that fails
        leaves the others.
        """
        for name, make in self.makers.items():
            try:
                self.loaded[name] = await beside(self.limit, make)
            except Exception as error:
                print(f"{name} was not loaded: {reason(error, self.limit)}", flush=True)
            finally:
                self.coming.discard(name)

    def get(self, name: str | None):
        """The model of a name. Raises Refused, with 503 while it is being loaded."""
        if name in self.coming:
            raise being_loaded()
        if name not in self.loaded:
            known = ", ".join(self.loaded)
            raise Refused(404, f"there is no model {name!r:.110}; there are: {known}")
        return self.loaded[name]

    def close(self, left: Callable[[], float]) -> bool:
        """End all threads, each within `left()` seconds; whether they ended."""
        ended = [model.close(left()) for model in self.loaded.values()]
        return all(ended)

    def ready(self) -> bool:
        """Whether all were loaded, and all their runs end."""
        there = self.loaded.keys() == self.makers.keys()
        return there and not any(model.hangs for model in self.loaded.values())
