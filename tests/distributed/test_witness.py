"""The process that says which rank died first: its ear by itself, in a thread."""

import json
import socket

import pytest

from tests.distributed.listening import TOKEN, Listening

SIZE = 3


class Rank:
    """A rank's end of its connection."""

    def __init__(self, port, **hello):
        self.line = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.say(**hello)

    def say(self, **message):
        self.line.sendall(json.dumps(message).encode() + b"\n")

    def welcome(self):
        assert json.loads(self.line.recv(100)) == {"kind": "welcome"}
        return self


class Job:
    """A witness and the ranks that it knows."""

    def __init__(self):
        self.witness = Listening(SIZE)
        self.port = self.witness.port
        self.ranks = [Rank(self.port, rank=k, token=TOKEN).welcome() for k in range(SIZE)]

    def end(self, order):
        """The lines are cut, in this order; then the witness ends."""
        for k in order:
            self.ranks[k].line.close()
        self.witness.stop()


@pytest.fixture
def job():
    return Job()


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 1, 2)])
def test_the_first_to_die_is_named(job, order, capsys):
    job.end(order)
    assert capsys.readouterr().err == f"rank {order[0]} of 3 died\n"


def test_who_said_goodbye_has_not_died(job, capsys):
    for rank in job.ranks[::2]:
        rank.say(kind="over", counts={})
    job.end((0, 2, 1))
    assert capsys.readouterr().err == "rank 1 of 3 died\n"


def test_after_a_failure_that_was_told_of_nobody_is_named(job, capsys):
    job.ranks[2].say(kind="failed", text="boom")
    job.end((2, 1, 0))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"hello\n", b"[1]\n", b'{"rank": 1, "token": "guess"}\n', b""])
def test_a_stranger_is_not_listened_to(job, sent, capsys):
    with socket.create_connection(("127.0.0.1", job.port), timeout=5) as stranger:
        stranger.sendall(sent)
        if not sent:
            stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(100) == b""  # the line is cut
    job.end((1, 0, 2))
    assert capsys.readouterr().err == "rank 1 of 3 died\n"


def test_a_line_that_breaks_is_a_line_that_is_cut(job, capsys):
    """A reset, as when a machine goes: the last bytes were not read."""
    job.ranks[1].line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0] + 4 * [0]))
    job.end((1, 0, 2))
    assert capsys.readouterr().err == "rank 1 of 3 died\n"
