"""The progress of a consumer: what waits is told from what hangs."""

import pytest

from wms.bus.progress import ConsumerProgress


def test_a_partition_that_waits_is_told_from_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("wms.bus.progress.time.monotonic", lambda: now)
    progress = ConsumerProgress()
    progress.assign([0, 1])
    progress.opened([0, 1], {0: 5, 1: 5})
    assert progress.heard(0, 5, unread=0, answered_at=1_000)
    now += 6
    assert not progress.heard(0, 5, unread=0, answered_at=1_000)  # the same answer as before
    assert not progress.heard(1, 9, unread=4, answered_at=9_000)  # there is something, and it does not come
    now += 1
    assert progress.heard(0, 5, unread=0, answered_at=2_000)
    now += 2
    assert progress.unheard([0, 1]) == [1]
    assert [each.stalled for each in progress.health()] == [False, True]
    assert [each.lag for each in progress.health()] == [0, 4]
    progress.closed([0, 1])
    assert [(each.reading, each.lag) for each in progress.health()] == [(False, 0), (False, 4)]


def test_a_partition_behind_a_long_batch_is_told_and_not_taken_for_deaf(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("wms.bus.progress.time.monotonic", lambda: now)
    progress = ConsumerProgress()
    progress.assign([0, 1])
    progress.opened([0, 1], {0: 5, 1: 5})
    progress.taken([0, 1], {0: 5})
    now += 30
    assert [each.in_hand_offset for each in progress.health()] == [5, None]
    assert [each.stalled for each in progress.health()] == [True, True]
    assert progress.longest_batch_seconds() == 30
    assert progress.longest_stall_seconds() == 0
    progress.done([0, 1])
    assert progress.unheard([0, 1]) == []
    assert progress.longest_stall_seconds() == 0


def test_a_batch_that_comes_on_is_told_from_one_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("wms.bus.progress.time.monotonic", lambda: now)
    progress = ConsumerProgress()
    progress.assign([0, 1, 2])
    progress.opened([0, 1, 2], {0: 5, 1: 5, 2: 5})
    progress.taken([0, 1], {0: 5})
    progress.taken([2], {2: 5})
    now += 20
    progress.stepped({0})  # its whole lane waits for the same batch
    now += 3
    told = [(each.busy_seconds, each.step_seconds_ago) for each in progress.health()]
    assert told == [(23, 3), (23, 3), (23, 23)]
    progress.done([0, 1])
    assert [each.busy_seconds for each in progress.health()] == [0, 0, 23]
