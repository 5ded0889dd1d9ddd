"""Events of jobs, for those who wait for them."""

from datetime import UTC, datetime

from wms.client.job_events import concerns
from wms.ids import Epoch, JobId
from wms.job.state import Event, State
from wms.messages.events import JobEvent, JobsMoved, JobsQueued

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_events_concern_those_who_wait_for_their_jobs() -> None:
    moved = JobEvent(
        job_id=JobId(7),
        seq=1,
        at=NOW,
        event=Event.KILL,
        state=State.KILLED,
        epoch=Epoch(0),
        owner="a",
        vo="b",
    )
    queued = JobsQueued(first=JobId(10), count=5, at=NOW, owner="a", owner_group="g", vo="b")
    assert concerns(moved, ())
    assert concerns(moved, ((1, 3), (7, 9)))
    assert not concerns(moved, ((8, 9),))
    assert concerns(JobsMoved(events=(moved,)), ((7, 7),))
    assert [concerns(queued, ((n, n),)) for n in (9, 10, 14, 15)] == [False, True, True, False]
