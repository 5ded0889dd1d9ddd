"""Those who follow an owner's events."""

from datetime import UTC, datetime

from services.gateway import event_follower
from services.gateway.event_cursor import EventCursor
from services.gateway.event_follower import EventFollowers
from services.gateway.event_record import EventRecord
from wms.ids import Epoch, JobId
from wms.job.state import Event, State
from wms.messages.events import Fact, JobEvent, JobsMoved, JobsQueued

AT = datetime(2026, 1, 1, tzinfo=UTC)


def queued(owner: str) -> JobsQueued:
    return JobsQueued(first=JobId(1), count=1, at=AT, owner=owner, owner_group="users", vo="atlas")


def moved_job(job_id: int, owner: str) -> JobEvent:
    return JobEvent(
        job_id=JobId(job_id),
        seq=3,
        at=AT,
        event=Event.HOLD,
        state=State.HELD,
        epoch=Epoch(0),
        owner=owner,
        vo="v",
    )


def record(offset: int, fact: Fact | None) -> EventRecord:
    return EventRecord(0, offset, 1, fact)


def cursor(offset: int) -> EventCursor:
    return EventCursor("x", (offset, 0, 0, 0))


def given(followers: EventFollowers, offset: int, fact: Fact | None) -> None:
    followers.give(record(offset, fact), lambda: cursor(offset + 1))


async def test_each_gets_what_concerns_its_owner_with_the_place_behind_it() -> None:
    followers = EventFollowers()
    with followers.following("alice") as alice, followers.following("bob") as bob:
        given(followers, 0, queued("alice"))
        given(followers, 1, queued("carol"))
        given(followers, 2, None)
        moved = [moved_job(n, owner) for n, owner in enumerate(("alice", "bob"), 1)]
        given(followers, 3, JobsMoved(events=tuple(moved)))
        await alice.wait(60)
        assert [(each.offset, at.offsets[0]) for each, at in alice.take()] == [(0, 1), (3, 4)]
        assert [each.offset for each, _ in bob.take()] == [3]
        await alice.wait(0)
    assert not followers._of_owner


def test_who_is_too_far_behind_is_told_that_it_missed_something() -> None:
    followers = EventFollowers()
    with followers.following("alice") as alice:
        for n in range(event_follower.MOST):
            given(followers, n, queued("alice"))
        before = alice.has_missed
        given(followers, event_follower.MOST, queued("alice"))
        assert (before, alice.has_missed) == (False, True)
        assert len(list(alice.take())) == event_follower.MOST


async def test_what_is_gone_is_told_to_all() -> None:
    followers = EventFollowers()
    with followers.following("alice") as alice, followers.following("bob") as bob:
        followers.miss()
        await bob.wait(60)
        assert (alice.has_missed, bob.has_missed) == (True, True)
