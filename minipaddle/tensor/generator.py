"""The generator that random tensors are drawn from: a key and a counter."""

import threading
from operator import index

from ..core.prelude import Recording, Spec, creation, current, int64, per_rank, value_error
from ..engine.eager.convert import as_array
from ..engine.eager.device import current_place
from ..engine.eager.tensor import Tensor, wrap
from ..ops.random import base_of, next_state, stream

__all__ = ["get_cuda_rng_state", "get_rng_state", "seed", "set_cuda_rng_state", "set_rng_state"]


class Generator:
    """A key and a counter for each rank. Each draw starts a new stream; threads may draw at the
    same time.
    """

    def __init__(self, key: int = 0):
        self._lock = threading.Lock()
        self._state = per_rank((index(key), 0))

    key = property(lambda self: self._state.now[0])
    counter = property(lambda self: self._state.now[1])

    def manual_seed(self, seed: int) -> "Generator":
        """Start again from `seed`."""
        return self.set_state((index(seed), 0))

    def initial_seed(self) -> int:
        return self.key

    def get_state(self) -> tuple[int, int]:
        """(key, counter)"""
        return self._state.now

    def set_state(self, state: tuple[int, int]) -> "Generator":
        if current.top.tracing and not current.top.by_hand:
            with Recording(False):
                there = creation.assign(Tensor([*state], dtype="int64"))
                current.top.builder.write(self.trace_state(), there.array)
        else:
            self._state.now = state
        return self

    def draw(self):
        """The base of the next stream: a Python int; while a program is traced, a tensor."""
        if current.top.tracing:
            return self.draw_traced()
        with self._lock:
            key, counter = self._state.now
            self._state.now = key, counter + 1
        return stream(key, counter + 1)

    def draw_traced(self) -> Tensor:
        """The same in a program that has the generator as a state."""
        state = self.trace_state()
        with Recording(False):
            now = next_state(wrap(state))
            current.top.builder.write(state, now.array)
            return base_of(now)

    def position(self):
        """The position of the next draw; while a program is traced, a tensor."""
        return creation.assign(wrap(self.trace_state())) if current.top.tracing else self._state.now

    def jump(self, position, draws: int) -> None:
        """Go to `draws` draws after a position, whatever was drawn since."""
        if not current.top.tracing:
            self._state.now = position[0], position[1] + draws
            return
        with Recording(False):
            there = position + Tensor([0, draws], dtype="int64")
            current.top.builder.write(self.trace_state(), there.array)

    def trace_state(self):
        """The state of the traced program that holds the generator's key and counter."""
        root, known = current.top.root, current.top.memory
        if id(self) not in known:
            state = root.state("generator", SPEC, root.place, GeneratorStorage(self))
            known[id(self)] = self, state
        return known[id(self)][1]

    def __repr__(self) -> str:
        return f"Generator(key={self.key}, counter={self.counter})"


class GeneratorStorage:
    """A generator as a state of a program: int64[2], its key and its counter."""

    def __init__(self, generator: Generator):
        self.generator = generator

    def read(self):
        return as_array(list(self.generator.get_state()), "int64", current_place())

    def write(self, array) -> None:
        self.generator.set_state((int(array[0]), int(array[1])))


SPEC = Spec((2,), int64.numpy)
GENERATOR = Generator()
"""The one that everything draws from."""


def seed(seed):
    """Start the generator again: the same seed gives the same numbers on every machine.

    Source: Paddle API `paddle.seed` (the numbers themselves are not Paddle's).

    >>> paddle.seed(7)
    Generator(key=7, counter=0)
    >>> x = paddle.rand([2])
    """
    return GENERATOR.manual_seed(seed)


def get_rng_state(device=None):
    """The generator's position, as a list of one state.

    >>> state = paddle.get_rng_state()
    >>> x = paddle.rand([2])
    >>> paddle.set_rng_state(state)
    >>> (x == paddle.rand([2])).tolist()
    [True, True]
    """
    return [GENERATOR.get_state()]


def set_rng_state(state_list, device=None):
    """Put the generator back to where `get_rng_state` found it.

    >>> paddle.set_rng_state([(7, 0)])
    >>> paddle.get_rng_state()
    [(7, 0)]
    """
    if len(state_list) != 1:
        raise value_error(f"{len(state_list)} states", "the list that get_rng_state returned")
    GENERATOR.set_state(state_list[0])


def get_cuda_rng_state():
    """`get_rng_state`: every device draws from the one generator.

    >>> paddle.get_cuda_rng_state() == paddle.get_rng_state()
    True
    """
    return get_rng_state()


def set_cuda_rng_state(state_list):
    """`set_rng_state`.

    >>> paddle.set_cuda_rng_state(paddle.get_rng_state())
    """
    set_rng_state(state_list)
