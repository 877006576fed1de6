"""The batcher alone, with a clock of numbers; random histories against its promises."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipaddle.serving.batcher import Batcher, BatchPolicy, BatchRequest, Full


def queue(policy, *rows, cost=lambda rows: 0.0, **more):
    """A batcher in which requests of these rows wait since 0."""
    batcher = Batcher(policy, cost)
    for n in rows:
        batcher.add(BatchRequest(n, 0.0, **more))
    return batcher


def rows(batch):
    return [request.rows for request in batch]


def test_without_a_window_a_request_starts_at_once():
    assert rows(queue(BatchPolicy(8), 1).take(0.0)) == [1]


def test_requests_wait_for_others_for_the_window():
    batcher = queue(BatchPolicy(8, window=2.0), 1, 2)
    assert batcher.take(1.9) == []
    assert batcher.due(0.0) == 2.0
    assert rows(batcher.take(2.0)) == [1, 2]
    assert batcher.due(2.0) == math.inf


def test_a_full_batch_does_not_wait():
    assert rows(queue(BatchPolicy(8, window=2.0), 4, 4, 1).take(0.0)) == [4, 4]
    assert rows(queue(BatchPolicy(8, window=2.0), 5, 4).take(0.0)) == [5]  # no more fits


def test_a_preferred_size_does_not_wait():
    batcher = queue(BatchPolicy(8, window=2.0, preferred=(2, 4)), 1, 1, 1)
    assert rows(batcher.take(0.0)) == [1, 1]
    assert batcher.take(0.0) == []
    assert rows(batcher.take(2.0)) == [1]
    assert rows(queue(BatchPolicy(8, window=2.0, preferred=(2, 4)), 1, 1, 2).take(0.0)) == [1, 1, 2]


def test_a_runner_with_less_room_gets_less():
    batcher = queue(BatchPolicy(8), 2, 2, 2)
    assert rows(batcher.take(0.0, room=5)) == [2, 2]
    assert rows(batcher.take(0.0, room=5)) == [2]


def test_requests_of_another_shape_wait_for_their_own_batch():
    batcher = Batcher(BatchPolicy(4, window=1.0))
    for key, n in (("a", 1), ("b", 4), ("a", 1)):
        batcher.add(BatchRequest(n, 0.0, key))
    assert rows(batcher.take(0.0)) == [4]
    assert rows(batcher.take(1.0)) == [1, 1]


def test_priorities_come_first_and_then_who_came_first():
    batcher = Batcher(BatchPolicy(2))
    for name, priority in (("a", 1), ("b", 0), ("c", 1), ("d", 0)):
        batcher.add(BatchRequest(1, 0.0, priority=priority, payload=name))
    found = [[r.payload for r in batcher.take(0.0)] for _ in range(2)]
    assert found == [["b", "d"], ["a", "c"]]


def test_a_deadline_ends_the_window_early():
    batcher = queue(BatchPolicy(8, window=10.0), 1, cost=lambda rows: 1.0, deadline=3.0)
    assert batcher.due(0.0) == 2.0
    assert batcher.take(1.9) == []
    assert rows(batcher.take(2.0)) == [1]


def test_a_request_that_would_be_late_is_not_run():
    batcher = queue(BatchPolicy(8, window=10.0), 1, cost=lambda rows: 1.0, deadline=3.0)
    assert batcher.expire(2.0) == []
    assert rows(batcher.expire(2.1)) == [1]
    assert len(batcher) == 0


def test_as_many_wait_as_may():
    batcher = queue(BatchPolicy(8, capacity=2), 1, 1)
    with pytest.raises(Full):
        batcher.add(BatchRequest(1, 0.0))
    assert len(batcher) == 2


def test_a_request_of_higher_priority_takes_the_place_of_the_last():
    batcher = Batcher(BatchPolicy(8, capacity=2))
    first, last = (BatchRequest(1, 0.0, priority=2) for _ in range(2))
    assert batcher.add(first) is batcher.add(last) is None
    assert batcher.add(BatchRequest(1, 0.0, priority=1)) is last
    assert len(batcher) == 2


def test_a_request_may_leave():
    batcher = queue(BatchPolicy(8, window=1.0), 1)
    (request,) = batcher
    assert batcher.remove(request)
    assert not batcher.remove(request)
    assert batcher.due(0.0) == math.inf


def test_more_rows_than_a_batch_are_refused():
    with pytest.raises(ValueError, match="at most 8"):
        queue(BatchPolicy(8), 9)


POLICIES = st.builds(
    BatchPolicy, st.integers(1, 8), st.sampled_from([0.0, 1.0, 5.0]),
    st.lists(st.integers(1, 8), max_size=2).map(tuple), st.integers(1, 6),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "take", "wait", "expire"]), st.integers(1, 8),
        st.integers(0, 2), st.sampled_from([math.inf, 2.0, 7.0]), st.sampled_from("ab"),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.sweep
@given(POLICIES, STEPS)
@settings(max_examples=200, deadline=None)
def test_any_history(policy, steps):
    """Nothing is lost or comes twice; batches fit, are of one key, in order; nothing waits for
    ever, and nothing that is due is kept.
    """
    batcher, now, added, gone = Batcher(policy), 0.0, [], []
    for what, n, priority, patience, key in steps:
        if what == "add":
            request = BatchRequest(min(n, policy.largest), now, key, priority, now + patience)
            try:
                removed = batcher.add(request)
            except Full:
                assert len(batcher) == policy.capacity
                assert all(r.priority <= priority for r in batcher)
                continue
            added.append(request)
            gone += [removed] if removed else []
        elif what == "wait":
            now += n / 2
        elif what == "expire":
            late = batcher.expire(now)
            assert all(r.deadline < now for r in late)
            gone += late
        else:
            waiting = [*batcher]
            batch = batcher.take(now)
            gone += batch
            assert sum(rows(batch)) <= policy.largest
            assert len({r.key for r in batch}) <= 1
            assert batch == sorted(batch, key=lambda r: r.order)
            if not batch:
                assert all(now < r.arrived + policy.window for r in waiting)
                assert batcher.due(now) > now
            else:
                skipped = [r for r in waiting if r.key == batch[0].key and r not in batch]
                assert all(r.order > batch[-1].order for r in skipped)
        assert len(batcher) <= policy.capacity
    while batch := batcher.take(now := now + 100):
        gone += batch
    assert sorted(r.number for r in gone) == sorted(r.number for r in added)
    assert len({id(r) for r in gone}) == len(gone)


def test_room_is_for_those_who_come_before_somebody_that_waits():
    batcher = Batcher(BatchPolicy(8, capacity=2))
    assert batcher.has_room()
    for priority in (0, 1):
        batcher.add(BatchRequest(1, 0.0, priority=priority))
    assert batcher.has_room(0)
    assert not batcher.has_room(1)
    batcher.add(BatchRequest(1, 0.0))
    assert not batcher.has_room(0)
