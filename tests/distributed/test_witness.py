"""The process that says which rank died first: its ear by itself, in a thread."""

import json
import socket

import pytest

from minipaddle.distributed.failures import witness as witness_file
from minipaddle.distributed.failures.witness import greeting
from tests.distributed.listening import TOKEN, Listening

SIZE = 3


class Rank:
    """A rank's end of its connection."""

    def __init__(self, port, number):
        self.line = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.line.sendall(greeting(number, TOKEN))

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
        self.ranks = [Rank(self.port, k).welcome() for k in range(SIZE)]

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


HELLO = greeting(1, TOKEN)
STRANGE = {
    "nothing": b"",
    "a guess": greeting(1, "guess!"),
    "JSON": b'{"rank": 1, "token": "secret"}\n',
    "a failure": b'{"kind": "failed", "text": "boom"}\n',
    "the token's half": HELLO[:4],
    "the token late": b"x" + HELLO,
}


@pytest.mark.parametrize("sent", STRANGE.values(), ids=STRANGE)
def test_a_stranger_is_not_listened_to(job, sent, capsys, monkeypatch):
    """What does not begin with the token is cut, at last when its time is over; nothing is heard of
    it, and the ranks go on.
    """
    heard, hear = [], job.witness.hear
    job.witness.hear = lambda line, message: heard.append(message) or hear(line, message)
    monkeypatch.setattr(witness_file, "GREETING", 0.3)
    with socket.create_connection(("127.0.0.1", job.port), timeout=5) as stranger:
        stranger.sendall(sent)
        assert closed(stranger)
    assert (heard, len(job.witness.ranks)) == ([], SIZE)
    job.end((1, 0, 2))
    assert capsys.readouterr().err == "rank 1 of 3 died\n"


def closed(line: socket.socket) -> bool:
    """Whether the other end closes a connection without an answer."""
    try:
        return line.recv(100) == b""
    except ConnectionResetError:  # it has not read all that was sent
        return True


def test_nobody_is_told_how_much_of_the_token_is_right(job, monkeypatch):
    """A wrong first letter is not cut sooner than a right one."""
    with socket.create_connection(("127.0.0.1", job.port), timeout=0.2) as stranger:
        for letter in (b"X", HELLO[1:2]):
            stranger.sendall(letter)
            with pytest.raises(TimeoutError):
                stranger.recv(1)
    job.end((0, 1, 2))


def test_many_strangers_keep_no_rank_out(job, monkeypatch):
    monkeypatch.setattr(witness_file, "STRANGERS", 3)
    strangers = [socket.create_connection(("127.0.0.1", job.port), timeout=5) for _ in range(5)]
    assert [closed(each) for each in strangers[:2]] == [True, True]
    job.ranks.append(Rank(job.port, SIZE).welcome())
    for each in strangers:
        each.close()
    job.end(range(SIZE + 1))


def test_a_line_that_breaks_is_a_line_that_is_cut(job, capsys):
    """A reset, as when a machine goes: the last bytes were not read."""
    job.ranks[1].line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0] + 4 * [0]))
    job.end((1, 0, 2))
    assert capsys.readouterr().err == "rank 1 of 3 died\n"
