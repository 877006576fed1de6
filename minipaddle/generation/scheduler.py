"""Continuous batching: texts join and leave a batch between two tokens.

Each text has a slot of the cache. A step reads a piece of one prompt, then writes a token of each
text whose prompt is read. A text that is finished leaves at once, and the next one that waits takes
its slot. What a slot held stays there: a prompt that begins with it starts where the two differ.

Sources: Yu et al., "Orca", 2022 (iteration-level scheduling); Agrawal et al., "Sarathi", 2023
(prompts in pieces); Kwon et al., "vLLM", 2023 (shared prefixes).
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..engine.core.errors import value_error
from ..engine.core.slots import slot
from .decoder import Decoder, power_of_two
from .sampling import Sampler

PIECE = 64
"""The most tokens of a prompt that a step reads: texts that are written wait for no more."""


@dataclass(eq=False)
class Request:
    """A prompt, and the tokens that were written after it.

    limit: how many tokens at most; end: tokens that end the text, and are no part of it
    finish: None while it is written, then "stop", "length", "cancelled" or "error"
    reused: how many tokens of the prompt needed no reading
    error: why it ended, if by an error
    """

    prompt: list[int]
    limit: int = 16
    sampler: Sampler = field(default_factory=Sampler)
    end: tuple[int, ...] = ()
    written: list[int] = field(default_factory=list)
    finish: str | None = None
    reused: int = 0
    error: Exception | None = None


@dataclass(eq=False)
class TextSlot:
    """One text of the cache: the tokens it holds, and those it has still to read."""

    number: int
    held: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    request: Request | None = None


class Scheduler:
    """Writes the texts of all requests that were submitted, `decoder.slots` at a time.

    >>> from minipaddle.generation import Decoder, Request, Sampler, Scheduler
    >>> net = paddle.text.GPT(5, width=8, layers=1, heads=2, context=8)
    >>> scheduler = Scheduler(Decoder(net, slots=2))
    >>> three = [Request([1, 2], 4, Sampler(seed=k)) for k in range(3)]
    >>> for request in three:
    ...     scheduler.submit(request)
    >>> while scheduler.busy:
    ...     events = scheduler.step()
    >>> [len(request.written) for request in three]
    [4, 4, 4]
    """

    def __init__(self, decoder: Decoder, piece: int = PIECE):
        self.decoder, self.piece = decoder, piece
        self.slots = [TextSlot(k) for k in range(decoder.slots)]
        self.waiting: deque[Request] = deque()

    @property
    def busy(self) -> bool:
        """Whether a request waits or is written."""
        return bool(self.waiting) or any(each.request for each in self.slots)

    def submit(self, request: Request) -> None:
        """Put a request in line. Raises ValueError if its prompt is empty or too long."""
        if not request.prompt:
            raise value_error("an empty prompt", "one token or more")
        self.decoder.require_room(len(request.prompt) + 1)
        self.waiting.append(request)

    def cancel(self, request: Request) -> None:
        """Take a request out, wherever it is."""
        if request in self.waiting:
            self.waiting.remove(request)
        for each in self.slots:
            if each.request is request:
                each.request, each.unread = None, []
        request.finish = request.finish or "cancelled"

    def step(self) -> list[tuple[Request, int | None]]:
        """(request, token) for each token that was written; None for one that only ended a text.
        An error ends the text that it is about, and no other.
        """
        self.admit()
        ready = [each for each in self.slots if each.request and not each.unread]
        return self.read() + self.write(ready)

    @slot("generation.admit")
    def admit(self) -> None:
        """Give slots to requests that wait, the first come first: of the free ones that which
        holds the longest beginning of the prompt. If a busy one holds more, it is copied.
        """
        while self.waiting and not all(each.request for each in self.slots):
            request = self.waiting.popleft()
            prompt = request.prompt
            common = {each.number: count_shared(each.held, prompt) for each in self.slots}
            free = [each for each in self.slots if each.request is None]
            mine = max(free, key=lambda each: (common[each.number], -each.number))
            best = max(self.slots, key=lambda each: common[each.number])
            if common[best.number] > common[mine.number]:
                sources = [best.number if each is mine else each.number for each in self.slots]
                self.decoder.reorder(sources)
            request.reused = common[best.number]
            mine.held, mine.unread = prompt[: request.reused], prompt[request.reused :]
            mine.request = request

    def read(self) -> list[tuple[Request, int | None]]:
        """Read a piece of the prompt that came first."""
        late = [each for each in self.slots if each.request and each.unread]
        if not late:
            return []
        each = min(late, key=lambda each: len(each.unread))
        now, each.unread = each.unread[: self.piece], each.unread[self.piece :]
        try:
            scores = self.decoder.read(now, each.number, len(each.held))
        except Exception as error:
            return [self.fail(each, error)]
        each.held += now
        return [] if each.unread else [self.draw(each, scores[-1])]

    def write(self, ready: list[TextSlot]) -> list[tuple[Request, int | None]]:
        """Write a token of each of these texts. The slots between them compute along, and what they
        write lies behind all that they hold.
        """
        if not ready:
            return []
        n = min(len(self.slots), power_of_two(1 + max(each.number for each in ready)))
        tokens, last = np.zeros(n, "int64"), self.decoder.context - 1
        for each in ready:
            tokens[each.number] = each.request.written[-1]
        for each in self.slots[:n]:
            if each not in ready:
                del each.held[last:]
        starts = [len(each.held) for each in self.slots[:n]]
        try:
            scores = self.decoder.step(tokens, starts)
        except Exception:  # one of them may be to blame: the others go on
            return [self.write_alone(each) for each in ready]
        return [self.continue_with(each, scores[each.number]) for each in ready]

    def write_alone(self, each: TextSlot) -> tuple[Request, int | None]:
        """Write a token of one text in a run of its own."""
        try:
            scores = self.decoder.read(each.request.written[-1:], each.number, len(each.held))
        except Exception as error:
            return self.fail(each, error)
        return self.continue_with(each, scores[-1])

    def continue_with(self, each: TextSlot, scores) -> tuple[Request, int | None]:
        """Draw the next token of a text whose last one was read."""
        each.held.append(each.request.written[-1])
        return self.draw(each, scores)

    def draw(self, each: TextSlot, scores) -> tuple[Request, int | None]:
        """Draw the next token of a text; a text that is finished leaves its slot."""
        request = each.request
        try:
            token = request.sampler.draw(scores)
        except Exception as error:
            return self.fail(each, error)
        if token in request.end:
            token, request.finish = None, "stop"
        else:
            request.written.append(token)
            full = len(request.prompt) + len(request.written) >= self.decoder.context
            if len(request.written) >= request.limit or full:
                request.finish = "length"
        if request.finish:
            each.request = None
        return request, token

    def fail(self, each: TextSlot, error: Exception) -> tuple[Request, None]:
        """End a text by an error; it leaves its slot, and nothing of it stays there."""
        request, each.request, each.unread, each.held = each.request, None, [], []
        self.decoder.clear(each.number)
        request.finish, request.error = "error", error
        return request, None


@slot("generation.count_shared")
def count_shared(held: list[int], prompt: list[int]) -> int:
    """How many tokens of a prompt need no reading: the last one always does, for its scores."""
    n = 0
    for a, b in zip(held, prompt[:-1]):
        if a != b:
            break
        n += 1
    return n
