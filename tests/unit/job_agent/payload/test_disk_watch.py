"""When a payload's files are counted: before it can be a fifth over its limit, and hardly ever if nothing is written."""

import threading
from pathlib import Path

from services.job_agent.payload.disk_watch import (
    FASTEST,
    LOOK_LONGEST,
    MARGIN,
    REST_FIRST,
    REST_SHORTEST,
    TOLERANCE,
    DiskGauge,
    DiskWatch,
)
from tests.unit.job_agent.examples import failing

LIMIT, FREE = 100_000_000, 50_000_000_000
START = 1_000.0


def counted(used: int = 0) -> DiskGauge:
    gauge = DiskGauge(LIMIT, START)
    gauge.note(used, FREE, 0, START, START)
    return gauge


def test_a_payload_is_counted_soon_after_its_start_and_then_if_much_was_written() -> None:
    gauge = DiskGauge(LIMIT, START)
    assert not gauge.is_urgent(FREE, START)
    assert not gauge.is_due(0, START)
    assert gauge.is_due(0, START + REST_FIRST)
    gauge.note(0, FREE, 0, START, START)
    later = START + 2 * REST_SHORTEST
    assert not gauge.is_due(1_000, later), "what is written by others hardly matters"
    assert gauge.is_due(LIMIT, later)
    assert not gauge.is_due(LIMIT, START + REST_SHORTEST / 2)


def test_what_is_no_longer_free_may_be_its_own() -> None:
    gauge = counted(60_000_000)
    taken = LIMIT - 60_000_000
    assert not gauge.is_urgent(FREE - taken, START + 1)
    assert gauge.is_urgent(FREE - taken - int(TOLERANCE * LIMIT), START + 1)
    assert not gauge.is_urgent(FREE + LIMIT, START + 1), "others may free more"


def test_it_is_looked_at_before_it_can_be_a_fifth_over_its_limit() -> None:
    for used in (0, LIMIT // 2, LIMIT, 2 * LIMIT):
        for taken in (0, LIMIT // 4, LIMIT):
            seconds = counted(used).safe_seconds(FREE - taken)
            most = max(used + taken, LIMIT) if used + taken > LIMIT else used + taken + FASTEST * seconds
            assert most <= max(used + taken, (1 + TOLERANCE + MARGIN) * LIMIT + 1)
            assert seconds >= (TOLERANCE + MARGIN) * LIMIT / FASTEST


def test_a_long_count_is_not_begun_again_at_once() -> None:
    gauge = counted()
    gauge.note(LIMIT, FREE, 0, START, START + 2)
    assert not gauge.is_urgent(FREE - LIMIT, START + 3)
    assert gauge.is_urgent(FREE - LIMIT, START + 11)


class Counted:
    """A payload that is watched, and how often it was counted."""

    def __init__(self, gauge: DiskGauge | None) -> None:
        self.gauge = gauge
        self.counts = 0
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def count_disk(self) -> int:
        """Count nothing, once more, until that may end."""
        self.counts += 1
        self.begun.set()
        assert self.may_end.wait(60)
        return 0


def test_who_has_no_limit_is_not_looked_at(tmp_path: Path) -> None:
    unbound, bound = Counted(None), Counted(DiskGauge(10**15, START))
    bound.may_end.set()
    assert DiskWatch(tmp_path, [unbound], failing)._look() == LOOK_LONGEST
    assert DiskWatch(tmp_path, [unbound, bound], failing)._look() == LOOK_LONGEST
    assert bound.begun.wait(60)
    assert (unbound.counts, bound.counts) == (0, 1)


def test_a_count_without_end_keeps_no_other_from_being_counted(tmp_path: Path) -> None:
    dear, other = (Counted(DiskGauge(10**15, START)) for _ in range(2))
    watch = DiskWatch(tmp_path, [dear, other], failing)
    try:
        other.may_end.set()
        watch._look()
        assert dear.begun.wait(60)
        assert other.begun.wait(60)
        watch._look()
        assert dear.counts == 1, "it is still being counted"
    finally:
        dear.may_end.set()
