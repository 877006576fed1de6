"""A model that writes texts, and the thread that runs it.

The thread owns the scheduler and takes its steps; requests reach it, and tokens leave it, through
queues. A client that goes away frees its slot before the next token. An error ends the text that it
is about; an error of the scheduler itself ends all that are written.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic
from weakref import WeakSet

from ..generation import Decoder, Request, Scheduler
from .runner import RUN_LIMIT, Refused


class TextWriter:
    """A model that writes texts, and the thread that runs it.

    letters: token k stands for `letters[k]`
    slots: texts at a time; capacity: requests that may wait besides
    limit: seconds of a step; a step that takes longer counts as one that never ends
    """

    def __init__(
        self, net, letters: str, slots: int = 8, capacity: int = 64, backend=None,
        limit: float = RUN_LIMIT,
    ):  # fmt: skip
        self.limit, self.began = limit, None  # when the step that runs began
        self.letters, self.numbers = letters, {c: k for k, c in enumerate(letters)}
        self.scheduler, self.capacity = Scheduler(Decoder(net, slots, backend=backend)), capacity
        self.calls: queue.SimpleQueue = queue.SimpleQueue()
        self.listeners: dict[Request, object] = {}
        self.promised: WeakSet[Request] = WeakSet()  # some of which are written; see `open`
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
        """Take new requests, then a step; without requests, wait."""
        scheduler = self.scheduler
        while True:
            while not self.calls.empty() or not scheduler.busy:
                call = self.calls.get()
                if call is None:
                    return
                call()
            self.began = monotonic()
            try:
                events = scheduler.step()
            except Exception as error:
                for request in [*self.listeners]:
                    scheduler.cancel(request)
                    self.tell(request, error)
                continue
            finally:
                self.began = None
            for request, token in events:
                self.tell(request, token if request.error is None else request.error)

    @property
    def hangs(self) -> bool:
        """Whether a step takes longer than it may."""
        began = self.began
        return began is not None and monotonic() - began > self.limit

    @property
    def open(self) -> int:
        """The texts that wait or are written: those that were promised, and somebody still has."""
        return sum(request.finish is None for request in self.promised)

    def require_room(self, count: int) -> None:
        """Raise Refused if the queue cannot take `count` further texts."""
        most = len(self.scheduler.slots) + self.capacity
        if count > most:
            raise Refused(400, f"{count} texts; at most {most} are written and wait together")
        if self.hangs:
            raise Refused(503, "a step of the model does not end", 1.0)
        if self.open + count > most:
            raise Refused(503, "too many texts wait; try again later", 1.0)

    def tell(self, request: Request, event) -> None:
        """Hand a token, or an error, to the coroutine that waits for it."""
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
            except Exception as error:
                request.finish = "error"
                self.tell(request, error)

        def end():
            self.listeners.pop(request, None)
            self.scheduler.cancel(request)

        self.calls.put(begin)
        try:
            finish = None
            while finish is None:
                event, finish = await self.next_of(events)
                if isinstance(event, Exception):
                    raise event
                if event is not None:
                    yield event
        finally:
            if request.finish is None:
                self.calls.put(end)

    async def next_of(self, events: asyncio.Queue) -> tuple:
        """The next tokens. Raises Refused if nothing can come, for a step does not end."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self.limit / 4, 0.01)):
                    return await events.get()
            if self.hangs:
                raise Refused(504, "a step of the model does not end")

    def close(self, limit: float | None = None) -> bool:
        """End the thread after its step; False if the step does not end within `seconds`."""
        self.calls.put(None)
        self.thread.join(limit)
        return not self.thread.is_alive()
