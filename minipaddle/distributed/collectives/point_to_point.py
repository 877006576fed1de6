"""More methods of process groups: messages from one rank to one other, and the check for NaN.

Each kind of group implements `post` and `take` for messages, which only start.

One NaN of one rank is NaN in all after a reduction. With the environment variable
MINIPADDLE_CHECK_NAN=1, or `group.check_nan = True` in all ranks, a reduction first looks for NaN
and names the ranks that have it; this waits for all ranks, so it is slower.
"""

import os

from ...engine.core.dtype import FLOATS
from ...engine.core.errors import value_error
from ...engine.core.rank import NO_CAUSE, cause
from ...engine.core.record import Spec
from ...engine.distributed.collectives import COLLECTIVES, why
from ...engine.distributed.process_group import Done, PeerFailed, ProcessGroup, Work, result_or_work
from ...engine.distributed.thread_group import ThreadGroup
from ...engine.eager.device import module_of


class NaNCheck:
    """Whether reductions look for NaN."""

    @property
    def check_nan(self) -> bool:
        return vars(self).get("_check_nan", os.environ.get("MINIPADDLE_CHECK_NAN") == "1")

    @check_nan.setter
    def check_nan(self, value: bool) -> None:
        self._check_nan = value


def refuse_nan(group: ProcessGroup, name: str, array) -> None:
    """Raise ValueError in all ranks if an array has NaN; it names the ranks."""
    if not group.check_nan or array.dtype not in FLOATS:
        return
    m = module_of(array)
    flags = group.start("all_gather", m.asarray([m.isnan(array).any()])).wait().tolist()
    if any(flags):
        who = ", ".join(str(r) for r, flag in zip(group.ranks, flags, strict=True) if flag)
        message = f"{name} of {array.dtype}{list(array.shape)}: NaN comes from rank {who}"
        raise value_error(message, hint="look at its data and its loss, before the backward")


class Messages:
    """Messages from one rank to one other."""

    def send(self, array, dst: int, tag: int = 0, *, wait: bool = True):
        """Send to the rank `dst`, which calls `recv`. Messages of a tag arrive in their order."""
        return result_or_work(self.post(array, self.check_rank(dst), tag), wait)

    def recv(self, array, src: int, tag: int = 0, *, wait: bool = True):
        """Receive into `array` the array that the rank `src` sends."""
        return result_or_work(self.take(array, self.check_rank(src), tag), wait)


class ThreadMembers:
    """Messages between threads, each a collective of two ranks; waits beside the group."""

    def post(self, array, dst: int, tag: int) -> Work:
        self.message(0, self.rank, dst, tag, array.copy())
        return Done()

    def take(self, array, src: int, tag: int) -> Work:
        return self.message(1, src, self.rank, tag, array)

    def message(self, side: int, src: int, dst: int, tag: int, array) -> Work:
        """Take part in a message: the sender is on side 0, the receiver on side 1."""
        key = self.key, src, dst, tag
        with self.world.changed:
            self.world.messages[key, side] += 1
            number = self.world.messages[key, side]
        what, ranks = f"recv from rank {src}{why(cause.now)}", [self.ranks[src], self.ranks[dst]]
        call = "message", array, {"root": src, "cause": NO_CAUSE}
        work = self.join((*key, number), "message", what, ranks, side, call)
        work.collective.work()  # the rank that arrives last copies it
        return work

    def note_wait(self, number: int) -> None:
        """Note that this rank waits for a collective outside of the world's own wait."""
        rank = self.ranks[self.rank]
        self.world.waits[rank] = self.world.latest[rank], lambda: self.missing(number)

    def missing(self, number: int) -> list[int]:
        """The ranks that have not called a collective."""
        counts = [self.world.counts.get((*self.key, k), 0) for k in range(self.size)]
        return [r for r, count in zip(self.ranks, counts) if count < number]

    def report_timeout(self, number: int, what: str, timeout: float) -> PeerFailed:
        return self.world.time_out(what, timeout, self.missing(number))


def message(inputs, options, r: int):
    """Copy the array of rank 0 of two into the array of rank 1."""
    sent, expected = (Spec(x.shape, x.dtype) for x in inputs)
    if sent != expected:
        raise ValueError(f"recv of {expected} from rank {options[r]['root']}, which sent {sent}")
    inputs[1][...] = inputs[0]
    return inputs[r]


def give(owner: type, *sources: type) -> None:
    """Give a kind of group the methods and properties of other classes."""
    for source in sources:
        for name, member in vars(source).items():
            if not name.startswith("__"):
                setattr(owner, name, member)


COLLECTIVES["message"] = message
give(ProcessGroup, NaNCheck, Messages)
give(ThreadGroup, ThreadMembers)
ProcessGroup.checks = (refuse_nan,)
