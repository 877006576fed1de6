"""The side channel by itself: a witness and its ranks in one process."""

import re
import socket
import sys
import threading
import time
from contextlib import suppress

import pytest

from minipaddle.distributed import CollectiveTimeout, PeerFailed
from minipaddle.distributed.failures import watch
from minipaddle.distributed.failures import witness as witness_file
from minipaddle.distributed.failures.watch import FailureWatch
from tests.distributed.listening import Listening


@pytest.fixture
def witness():
    """A witness of three ranks."""
    found = Listening(3)
    yield found
    found.stop()


@pytest.fixture
def ranks(monkeypatch, witness):
    """Three ranks that have met."""
    monkeypatch.setattr(witness_file, "ANSWER", 0.3)
    monkeypatch.setattr(watch, "GRACE", 1.0)
    found = [witness.meet(k) for k in range(3)]
    settle(lambda: len(witness.ranks) == 3)
    yield found
    for each in found:
        cut(each)
    settle(lambda: all(each.connection.fileno() < 0 for each in found))


def cut(rank: FailureWatch) -> None:
    """What the system does to the connection of a process that dies."""
    with suppress(OSError):
        rank.connection.shutdown(socket.SHUT_RDWR)


def settle(done, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def heard(rank: FailureWatch) -> str:
    settle(lambda: rank.failure)
    with pytest.raises(type(rank.failure)) as error:
        rank.check()
    return str(error.value)


def test_a_failure_is_told_to_all(ranks):
    ranks[1].report_failure(ValueError("boom"))
    assert [heard(r) for r in ranks] == ["rank 1 failed: ValueError: boom"] * 3
    with pytest.raises(PeerFailed, match="boom"):
        ranks[0].count_call("0", "barrier")


def test_the_first_failure_is_the_cause(ranks):
    ranks[2].report_failure(ValueError("first"))
    ranks[1].report_failure(
        PeerFailed("of another")
    )  # what another's failure has caused is not told
    ranks[0].report_failure(KeyError("second"))
    cut(ranks[1])
    assert "first" in heard(ranks[0])
    assert "first" in heard(ranks[2])


@pytest.mark.parametrize("k", range(3))
def test_a_line_that_is_cut_is_a_death(ranks, k):
    cut(ranks.pop(k))
    assert [heard(rank) for rank in ranks] == [f"rank {k} died"] * 2


def test_who_comes_after_a_failure_hears_of_it(witness):
    """A rank may go on before the witness knows it, and another fail meanwhile."""
    first, second = witness.meet(0), witness.meet(1)
    settle(lambda: len(witness.ranks) == 2)
    second.report_failure(ValueError("boom"))
    second.leave()
    settle(lambda: 1 in first.ended)
    third = witness.meet(2)
    settle(lambda: 1 in third.ended)
    assert heard(third) == "rank 1 failed: ValueError: boom"
    for each in (first, second, third):
        cut(each)
        settle(lambda each=each: each.connection.fileno() < 0)


def test_the_witness_itself_may_die():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        rank = FailureWatch(1, 2, "127.0.0.1", port, "token")
        server.accept()[0].close()
    assert heard(rank) == "the witness died"


def test_who_is_late_is_asked_for(ranks):
    for rank in ranks[:2]:
        rank.count_call("0", "barrier")
    ranks[0].count_call("0", "all_reduce")
    ranks[2].count_call("0", "barrier")
    ranks[2].count_call("0", "all_reduce")
    with pytest.raises(CollectiveTimeout) as error:
        raise ranks[0].report_timeout("0", 2, [0, 1, 2], "all_reduce number 2", 0.5)
    expected = "all_reduce number 2 waited 0.5 s: rank 1 did not come (it was last in barrier "
    assert str(error.value) == expected + "number 1)"
    assert heard(ranks[1]) == heard(ranks[2]) == str(error.value)


@pytest.mark.parametrize(("waits", "blamed"), [({1: 2}, {2}), ({1: 2, 2: 0}, {1})])
def test_who_waits_for_another_is_not_to_blame(ranks, waits, blamed):
    """On a mesh a rank is late because another one is; unless they wait in a circle."""
    for rank, other in waits.items():
        ranks[rank].waiting = f"{rank},{other}", 1, [other]
    ranks[0].waiting = "0,1", 1, [0, 1]
    ranks[0].count_call("0,1", "all_reduce")
    with pytest.raises(CollectiveTimeout) as error:
        raise ranks[0].report_timeout("0,1", 1, [0, 1], "all_reduce number 1", 0.5)
    assert {*re.findall(r"rank (\d) did not come", str(error.value))} == {*map(str, blamed)}


def test_who_does_not_answer_is_said_to_be_silent(ranks, monkeypatch):
    say = ranks[1].say
    monkeypatch.setattr(ranks[1], "say", lambda **m: None if m["kind"] == "here" else say(**m))
    with pytest.raises(CollectiveTimeout, match=r"rank 1 did not come \(it does not answer"):
        raise ranks[0].report_timeout("0", 1, [1], "recv from rank 1", 0.5)


def test_all_came_but_not_to_the_same(ranks):
    for rank, name in zip(ranks, ("all_reduce", "broadcast", "all_reduce")):
        rank.count_call("0", name)
    reason = (
        "all came, but not to the same; rank 0: it was last in all_reduce number 1; rank 1: it "
    )
    with pytest.raises(CollectiveTimeout, match=reason + "was last in broadcast"):
        raise ranks[2].report_timeout("0", 1, [0, 1, 2], "all_reduce number 1", 0.5)


def test_a_witness_that_does_not_answer(ranks, monkeypatch):
    monkeypatch.setattr(ranks[1], "say", lambda **message: None)
    with pytest.raises(CollectiveTimeout, match=r"waited 0\.5 s: the witness does not answer"):
        raise ranks[1].report_timeout("0", 1, [0, 1], "barrier number 1", 0.5)


def wait_elsewhere(rank: FailureWatch, key: str, ranks, call="barrier") -> None:
    """Let a rank call a collective of some ranks, and wait for it for long."""
    rank.report_waiting(key, rank.count_call(key, call), ranks, rank.last)


def test_all_wait_for_each_other(ranks):
    """All know it as soon as the last one has waited for long, each in a group of two."""
    for k, rank in enumerate(ranks):
        assert rank.failure is None
        wait_elsewhere(rank, f"{k}", [k, (k + 1) % 3], f"all_gather of group {k}")
    lines = [f"\n  rank {k}: all_gather of group {k} number 1" for k in range(3)]
    expected = "the ranks wait for each other: they do not ask for the same" + "".join(lines)
    assert [heard(rank) for rank in ranks] == [expected] * 3


@pytest.mark.parametrize("why", ["all came", "one works", "one went on"])
def test_who_waits_is_not_always_stuck(ranks, witness, why):
    """In one collective, which takes its time; for a rank that computes, or that waits no more."""
    for rank in ranks[: 2 if why == "one works" else 3]:
        wait_elsewhere(rank, "0", [0, 1, 2])
    settle(lambda: len(witness.waiting) == (2 if why == "one works" else 3))
    if why == "one went on":
        ranks[0].say(kind="working")
        settle(lambda: len(witness.waiting) == 2)
        wait_elsewhere(ranks[1], "1", [0, 1])
        wait_elsewhere(ranks[2], "2", [0, 2])
        settle(lambda: {each["key"] for each in witness.waiting.values()} == {"1", "2"})
    time.sleep(0.05)
    assert not any(rank.failure for rank in ranks)


def test_who_has_ended_never_comes(ranks):
    ranks[1].count_call("0", "barrier")
    ranks[1].say(kind="over", counts=ranks[1].counts)
    settle(lambda: 1 in ranks[0].ended)
    ranks[0].check_ended("0", 1, [0, 1, 2], "barrier number 1")
    for number in (2, sys.maxsize):
        with pytest.raises(PeerFailed, match="barrier number 2: rank 1 has ended"):
            ranks[0].check_ended("0", number, [0, 1, 2], "barrier number 2")
    cut(ranks[1])
    time.sleep(0.05)
    assert ranks[0].failure is None  # it had said goodbye


def test_after_a_failure_a_rank_waits_for_the_others_to_hear(ranks):
    ranks[1].report_failure(ValueError("boom"))
    settle(lambda: all(r.failure for r in ranks))
    began = time.monotonic()
    ranks[0].say(kind="over", counts={})
    ranks[2].say(kind="over", counts={})
    ranks[1].leave()
    assert time.monotonic() - began < 0.5
    assert ranks[1].ended.keys() == {0, 1, 2}


@pytest.mark.parametrize("stopped", [False, True])
def test_who_leaves_waits_for_the_others(ranks, witness, monkeypatch, stopped, capsys):
    """For one that works as long as it answers, which a stopped one does not."""
    answers, say = [], ranks[2].say

    def answer(**message):
        answers.append(message["kind"])
        if not stopped:
            say(**message)

    monkeypatch.setattr(ranks[2], "say", answer)
    witness.limit = 1.0
    threads = [threading.Thread(target=rank.leave) for rank in ranks[:2]]
    for each in threads:
        each.start()
    if not stopped:
        settle(lambda: len(answers) > witness.limit / witness_file.ANSWER + 2)
        assert all(each.is_alive() for each in threads)
        ranks[2].leave()
    for each in threads:
        each.join(5)
        assert not each.is_alive()
    expected = "rank 2 has not answered for 1 s, and others have ended: it is stopped, or in code "
    assert [f"{rank.failure}".startswith(expected) for rank in ranks] == [stopped] * 3
    assert capsys.readouterr().err.startswith(expected) == stopped


def test_a_stranger_is_not_let_in(witness):
    stranger = witness.meet(0, "guess!")
    settle(lambda: stranger.failure)
    own = witness.meet(0)
    assert own.welcome.wait(5)
    own.say(kind="failed", text="heard")
    assert heard(own) == "rank 0 failed: heard"
    cut(own)
    settle(lambda: own.connection.fileno() < 0)
