"""The vote, 64 bits per rank, on whether all ranks call the same collective."""

from ...engine.core.rank import NO_CAUSE, hash_64
from ...engine.distributed.collectives import build_mismatch, common_signature, format_call
from ...engine.eager.device import NUMPY


def weight_of(rank: int, size: int) -> int:
    """A number for each rank; over all ranks they sum to 0."""
    return hash_64(rank) if rank else -sum(map(hash_64, range(1, size)))


def vote(rank: int, size: int, name: str, array, options: dict) -> int:
    """A number of 64 bits for each rank. The sum over all ranks is 0 if they make the same call; if
    they do not, it is 0 with a probability of 2**-64: Σ weight·call, where the weights sum to 0.
    """
    total = weight_of(rank, size) * hash_64(common_signature(name, array, options))
    for other in range(size) if name == "all_to_all" else ():
        total += options["sent"][other] * hash_64(rank, other)
        total -= options["received"][other] * hash_64(other, rank)
    return total % 2**64


class Agreement:
    """The check that all ranks make the same call for the same cause: only then their votes sum
    to 0.
    """

    def __init__(self, group, name: str, array, options: dict, what):
        self.group, self.what, self.call = group, what, (name, array, options)
        vote = group.vote(name, array, {**options, "cause": NO_CAUSE})
        vote += group.weight * options["cause"].number
        self.votes = NUMPY.array([vote % 2**64], "uint64")
        self.request = group.aside.Iallreduce(group.MPI.IN_PLACE, self.votes, group.ops["sum"])
        self.texts = None  # the calls of all ranks, once they do not agree

    def is_reached(self) -> bool:
        """Return True once all votes agree. Raise ValueError with the calls of all ranks if they do
        not.

        The texts are messages, not a collective: ranks may have started other collectives by then.
        """
        if not self.request.Test():
            return False
        if not self.votes[0]:
            return True
        if self.texts is None:
            aside, size = self.group.aside, self.group.size
            self.texts = NUMPY.zeros((size + 1, 512), "uint8")
            octets = format_call(*self.call).encode()[:512]
            self.texts[size, : len(octets)] = list(octets)
            self.sent = [aside.Isend(self.texts[size], r) for r in range(size)]
            self.sent += [aside.Irecv(self.texts[r], r) for r in range(size)]
        if not self.group.MPI.Request.Testall(self.sent):
            return False
        calls = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in self.texts[:-1]]
        raise build_mismatch(self.what, self.group.ranks, calls)
