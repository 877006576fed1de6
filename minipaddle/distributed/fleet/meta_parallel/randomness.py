"""States of random numbers by name, as Paddle's programs in tensor parallel keep them.

Paddle's ranks draw numbers of their own for sharded tensors, and equal ones for the rest: two
generators. Here a draw is for the full tensor, and a rank takes its shard: on any mesh the numbers
equal those of one process. So there is one generator (`paddle.seed`, the same in all ranks), and a
state's name and seed change no draw.
"""

from contextlib import contextmanager

from ....engine.core.errors import value_error
from ....engine.core.rank import per_rank
from ....tensor.generator import seed as start

MODEL_PARALLEL_RNG = "model_parallel_rng"


class RNGStatesTracker:
    """Names of random states with their seeds; see the module for why no draw depends on them.

    >>> from minipaddle.distributed import fleet
    >>> tracker = fleet.meta_parallel.RNGStatesTracker()
    >>> tracker.add("local", 7)
    >>> with tracker.rng_state("local"):
    ...     tracker.get_states_tracker()
    {'local': 7}
    """

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        """Forget all states."""
        self.states_: dict[str, int] = {}

    def add(self, name, seed) -> None:
        """Add a state; ValueError if its name or seed exists already."""
        if name in self.states_:
            raise value_error(f"state {name} already exists")
        if seed in self.states_.values():
            raise value_error(f"seed {seed} already exists")
        self.states_[name] = seed

    def get_states_tracker(self) -> dict:
        """The seeds by name."""
        return dict(self.states_)

    def set_states_tracker(self, states) -> None:
        """Set the seeds by name, as `get_states_tracker` returns them."""
        self.states_ = dict(states)

    @contextmanager
    def rng_state(self, name=MODEL_PARALLEL_RNG):
        """Draw in this state inside the block; ValueError for an unknown name."""
        if name not in self.states_:
            raise value_error(f"state {name} does not exist", expected=f"one of {[*self.states_]}")
        yield


tracker = per_rank(RNGStatesTracker())


def get_rng_state_tracker() -> RNGStatesTracker:
    """The states of this rank.

    >>> from minipaddle.distributed import fleet
    >>> fleet.meta_parallel.get_rng_state_tracker().get_states_tracker()
    {}
    """
    return tracker.now


def model_parallel_random_seed(seed=None) -> None:
    """Start the generator, with the same seed in all ranks (2048 for None).

    >>> def work():
    ...     paddle.distributed.fleet.meta_parallel.model_parallel_random_seed(3)
    ...     return paddle.rand([1]).item()
    >>> first, second = paddle.distributed.spawn(work, nprocs=2).results
    >>> first == second
    True
    """
    seed = 2048 if seed is None else seed
    tracker.now.reset()
    tracker.now.add(MODEL_PARALLEL_RNG, seed)
    start(seed)
