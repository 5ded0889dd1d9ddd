"""Slurm's own output, as 22.05 printed it."""

from datetime import UTC, datetime

import pytest

from services.agreement.slurm_listing import (
    ListedReservation,
    in_use,
    jobs,
    nodes,
    read_time,
    reservations,
    written,
)

LISTED = """\
ReservationName=wms-1-1-0 StartTime=2026-11-25T04:42:48 EndTime=2026-11-25T04:52:48 Duration=00:10:00 Nodes=alpha1 NodeCnt=1 CoreCnt=3 \
Features=(null) PartitionName=main Flags=PURGE_COMP=00:05:00   NodeName=alpha1 CoreIDs=0-2 TRES=cpu=3 Users=root Groups=(null) \
Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=maint StartTime=2026-12-01T00:00:00 EndTime=2026-12-02T00:00:00 Duration=1-00:00:00 Nodes=alpha[1-2] NodeCnt=2 CoreCnt=8 \
Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES,ALL_NODES TRES=cpu=8 Users=root Groups=(null) Accounts=(null) State=INACTIVE

No reservations in the system
"""


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 11 if day > 20 else 12, day, hour, minute, second, tzinfo=UTC)


def test_reservations_are_read_with_the_cpus_that_they_take() -> None:
    assert list(reservations(LISTED)) == [
        ListedReservation("wms-1-1-0", "main", 3, at(25, 4, 42, 48), at(25, 4, 52, 48)),
        ListedReservation("maint", "(null)", 8, at(1), at(2)),
    ]


def test_jobs_are_read_and_those_in_reservations_are_found() -> None:
    printed = (
        "2026-11-25T04:41:49|2026-11-25T04:46:49|1|(null)\n2026-11-25T04:41:49|N/A|2|wms-7\ngarbage\n||x|\n"
    )
    first, second = jobs(printed)
    assert (first.began_at, first.ends_at, first.cpus, first.reservation) == (
        at(25, 4, 41, 49),
        at(25, 4, 46, 49),
        1,
        "",
    )
    assert (second.ends_at, second.reservation) == (None, "wms-7")
    assert in_use([first, second]) == {"wms-7"}


def test_nodes_are_read() -> None:
    assert nodes("4\n4\n16\n") == [4, 4, 16]


@pytest.mark.parametrize("text", ["Unknown", "N/A", "", "2026-13-01T00:00:00", "now"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert read_time(text) is None


def test_times_are_written_as_they_are_read() -> None:
    assert read_time(written(at(25, 4, 42, 48))) == at(25, 4, 42, 48)
