"""A model that reads tokens into a cache and scores the next one: one captured program."""

import numpy as np

from ..core.prelude import Recording, Tensor, value_error
from ..engine.jit.to_static import Switch
from ..engine.jit.user_lines import in_user_lines
from ..jit import to_static
from .cache import CacheView


class Decoder:
    """The scores of next tokens for texts in `slots` slots.

    The model is called as `net(tokens, view)` with tokens int64 [n, length] and a `CacheView` of
    the cache that `net.make_cache(slots, context)` gave. It is put into evaluation mode. Programs
    are made for lengths and reaches that are powers of two, so there are few of them.

    >>> from minipaddle.generation import Decoder
    >>> net = paddle.text.GPT(5, width=8, layers=1, heads=2, context=8)
    >>> decoder = Decoder(net, slots=2)
    >>> decoder.read([1, 2, 3], slot=0).shape  # the scores after each of the tokens
    (3, 5)
    >>> decoder.read([4], slot=0, start=3).shape
    (1, 5)
    """

    def __init__(self, net, slots: int = 1, context: int | None = None, backend=None):
        net.eval()
        self.net, self.cache = net, net.make_cache(slots, context)
        self.slots, self.context = slots, self.cache.context
        self.backend, self.programs = backend, {}
        self.move = to_static(self.take_texts, backend=backend)

    def step(self, tokens, starts) -> np.ndarray:
        """Scores [n, vocab] after one more token [n] in each of the first n slots, of which each
        holds `starts` [n] before.
        """
        return self.read_together(np.asarray(tokens)[:, None], starts)[:, -1]

    def read_together(self, tokens, starts) -> np.ndarray:
        """Scores [n, length, vocab] after tokens [n, length] in the first n slots."""
        tokens, starts = np.asarray(tokens, "int64"), np.asarray(starts, "int64")
        self.require_room(int(starts.max()) + tokens.shape[1])
        return self.scores(tokens, len(tokens), starts)

    def read(self, tokens, slot: int = 0, start: int = 0) -> np.ndarray:
        """Scores [length, vocab] after each of the tokens [length], which follow the first `start`
        tokens of a slot.
        """
        tokens, scores = np.asarray(tokens, "int64").ravel(), []
        self.require_room(start + len(tokens))
        slots = 1 if (self.slots, slot) == (1, 0) else np.array([slot])
        while len(tokens):
            n = power_of_two(len(tokens))
            if start + n > self.context:  # no room to fill up with tokens that do not count
                n = max(1, n // 2)
            now, tokens = tokens[:n], tokens[n:]
            filled = np.zeros((1, n), "int64")
            filled[0, : len(now)] = now
            scores.append(self.scores(filled, slots, np.array([start]))[0, : len(now)])
            start += n
        return np.concatenate(scores)

    def scores(self, tokens, slots, starts) -> np.ndarray:
        """Scores [n, length, vocab] after each of the tokens [n, length]; see `CacheView`."""
        reach = min(self.context, power_of_two(int(starts.max()) + tokens.shape[1]))
        key = slots if isinstance(slots, int) else None, tokens.shape, reach
        inputs = [Tensor(tokens), Tensor(starts), None if key[0] else Tensor(slots)]
        with Recording(False):
            if key not in self.programs:
                self.programs[key] = self.program(*key, inputs)
            return self.programs[key](*inputs).numpy()

    def program(self, first: int | None, shape: tuple, reach: int, given: list):
        """The program that scores tokens of one shape, in the first slots or in some. It
        writes to the cache alone, so its weights are frozen: packed for its products, once.
        """

        def advance(tokens, starts, slots):
            return self.net(tokens, CacheView(self.cache, first or slots, starts, shape[1], reach))

        static = to_static(advance, backend=self.backend)
        if Switch.on:
            try:
                static.capture_for(given, {})[0].executables.frozen = True
            except Exception as error:
                in_user_lines(error)
                raise
        return static

    def reorder(self, sources) -> None:
        """Let slot i hold the text that slot `sources[i]` holds."""
        with Recording(False):
            self.move(np.asarray(sources, "int64"))

    def take_texts(self, sources):
        """See `reorder`; `sources` [slots] is a tensor."""
        for buffer in self.cache.buffers():
            texts = buffer.reshape([self.context, self.slots, -1])
            buffer[:] = texts[:, sources].reshape(buffer.shape)

    def clear(self, slot: int) -> None:
        """Let a slot hold zeros: what is not finite would be seen by later texts, of which a weight
        of 0 leaves NaN.
        """
        with Recording(False):
            for buffer in self.cache.buffers():
                buffer[slot :: self.slots] = 0.0

    def require_room(self, n: int) -> None:
        """Raise ValueError if a text of n tokens is too long."""
        if n > self.context:
            raise value_error(
                f"a text of {n} tokens", f"at most context={self.context}",
                hint="cut the text, or build the model with a longer context",
            )  # fmt: skip


def power_of_two(n: int) -> int:
    """The least power of two that is n or more."""
    return 1 << max(0, n - 1).bit_length()
