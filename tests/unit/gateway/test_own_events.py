"""The part of a fact that concerns one user."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from services.gateway.own_events import OwnEvents
from wms.auth.principal import Principal
from wms.messages.events import Fact, JobEvent, JobsMoved, JobsQueued, SweepMoved, WaitReason

AT = datetime(2026, 1, 1, tzinfo=UTC)
ME = Principal(kind="user", owner="alice", group="users", vo="atlas", token_id="1", expires_at=0)


def event(job_id: int, seq: int, owner: str = "alice", vo: str = "atlas", group: str = "users") -> JobEvent:
    said: dict[str, Any] = {
        "job_id": job_id,
        "seq": seq,
        "at": AT,
        "event": "hold",
        "state": "Held",
        "epoch": 0,
    }
    return msgspec.convert(said | {"owner": owner, "owner_group": group, "vo": vo}, JobEvent)


def queued(first: int, owner: str = "alice", group: str = "users") -> JobsQueued:
    return msgspec.convert(
        {"first": first, "count": 2, "at": AT, "owner": owner, "owner_group": group, "vo": "atlas"},
        JobsQueued,
    )


def test_of_a_message_of_many_only_own_moves_are_left() -> None:
    told = OwnEvents(ME).pick(JobsMoved(events=(event(1, 3), event(2, 3, "bob"), event(3, 3, vo="cms"))))
    assert isinstance(told, JobsMoved)
    assert [each.job_id for each in told.events] == [1]


def test_a_message_that_comes_again_is_passed_over() -> None:
    own = OwnEvents(ME)
    facts: list[Fact] = [event(1, 3), JobsMoved(events=(event(1, 4), event(2, 3))), queued(5)]
    assert all(own.pick(each) for each in facts)
    assert not any(own.pick(each) for each in facts)


def test_a_move_that_comes_late_is_told() -> None:
    own = OwnEvents(ME)
    assert own.pick(event(1, 5))
    assert own.pick(event(1, 4))


@pytest.mark.parametrize(
    "fact",
    [
        event(1, 3, "bob"),
        event(1, 3, vo="cms"),
        event(1, 3, group="others"),
        event(1, 3, group=""),
        queued(1, "bob"),
        queued(1, group="others"),
    ],
)
def test_what_is_others_or_of_another_group_is_not_told(fact: Fact) -> None:
    assert OwnEvents(ME).pick(fact) is None


def test_moves_of_a_sweep_are_told_once_each() -> None:
    own = OwnEvents(ME)
    said = {"first": 1, "count": 9, "at": AT, "event": "hold", "state": "Held"}
    said |= {"owner": "alice", "owner_group": "users", "vo": "atlas"}
    moved = [msgspec.convert(said | {"seq": seq}, SweepMoved) for seq in (3, 4, 3)]
    assert [own.pick(each) is not None for each in moved] == [True, True, False]


def test_reasons_of_queues_are_no_moves() -> None:
    said = {
        "tq_id": 1,
        "at": AT,
        "code": "X",
        "text": "",
        "waiting": 1,
        "owner": "alice",
        "owner_group": "users",
    }
    assert OwnEvents(ME).pick(msgspec.convert(said | {"vo": "atlas"}, WaitReason)) is None
