"""Keys and values of the tokens that a model has read: each is computed once.

A cache has slots, one for each text, of at most `context` tokens. A run writes the keys and values
of its new tokens to their places and lets these tokens attend to all places up to their own. What
lies at later places is never read. So taking tokens back costs nothing: the next ones are written
over them.
"""

from ..nn import Layer
from ..tensor.creation import arange, zeros


class KeyValueCache(Layer):
    """Buffers of keys and of values, [context · slots, width], for each of `blocks` blocks. The
    first places of all slots lie together, so that a run which looks no further reads them as they
    lie.

    >>> from minipaddle.generation import KeyValueCache
    >>> KeyValueCache(blocks=2, slots=3, context=8, width=4).key1.shape
    [24, 4]
    """

    def __init__(self, blocks: int, slots: int, context: int, width: int, dtype="float32"):
        super().__init__()
        self.slots, self.context = slots, context
        for k in range(blocks):
            for kind in ("key", "value"):
                empty = zeros([context * slots, width], dtype)
                self.register_buffer(f"{kind}{k}", empty, persistable=False)


class CacheView:
    """A model's view of a cache in one run: new tokens, and those before them in some slots.

    slots: a number n, the first n slots; or int64 [n], which slots
    starts: int64 [n], how many tokens each slot holds before the run
    length: how many tokens each slot gets
    reach: how many places are looked at; all new tokens lie before it
    """

    def __init__(self, cache: KeyValueCache, slots, starts, length: int, reach: int):
        self.cache, self.slots, self.reach = cache, slots, reach
        self.places = starts.unsqueeze(1) + arange(length)
        self.mask = (arange(reach) <= self.places.unsqueeze(2)).unsqueeze(1)
        numbers = arange(slots) if isinstance(slots, int) else slots
        self.rows = (self.places * cache.slots + numbers.unsqueeze(1)).flatten()

    def extend(self, k: int, key, value):
        """Write the keys and values [n, length, heads, size] of block k; return those of all places
        in reach, [n, reach, heads, size].
        """
        return self._extend(f"key{k}", key), self._extend(f"value{k}", value)

    def _extend(self, name: str, new):
        _, _, heads, size = new.shape
        buffer, slots = getattr(self.cache, name), self.cache.slots
        buffer[self.rows] = new.reshape([-1, heads * size])
        texts = buffer[: self.reach * slots].reshape([self.reach, slots, heads, size])
        texts = texts[:, : self.slots] if isinstance(self.slots, int) else texts[:, self.slots]
        return texts.transpose([1, 0, 2, 3])
