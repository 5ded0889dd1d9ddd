"""Living pilots as the planner counts them: by their state, and by what each can still offer."""

from typing import Any

import msgspec
import pytest

from services.pilot_submitter.pilot_supply import planned_supply
from wms.db.pilot import EqualPilots
from wms.site import Resource

NOBODY: frozenset[Any] = frozenset()
ASKED = [100, 500, 1_000]
SENT = Resource(setup="s", vo="v", cpu_time=800, processors=4, memory_mb=8_000)


def living(state: str, **fields: Any) -> EqualPilots:
    given: dict[str, Any] = {
        "site": "A",
        "ce": "ce",
        "vo": "v",
        "state": state,
        "slots": 4,
        "busy": 0,
        "resource": msgspec.json.encode(SENT).decode(),
        "asks": "",
        "idle_node": "",
        "free_memory_mb": None,
        "silent": False,
        "owner_group": "",
        "lasts": len(ASKED),
        "pilots": 3,
        "worked": 0,
    }
    return EqualPilots(**{**given, **fields})


@pytest.mark.parametrize(
    ("pilots", "submitted", "waiting", "running", "ending", "idle_slots"),
    [
        (living("Submitting"), 3, 0, 0, 0, 0),
        (living("Submitted"), 3, 0, 0, 0, 0),
        (living("Waiting"), 0, 3, 0, 0, 0),
        (living("Running"), 0, 0, 3, 0, 12),
        (living("Running", busy=3), 0, 0, 3, 0, 3),
        (living("Running", silent=True), 0, 0, 3, 0, 0),
        (living("Running", lasts=0), 0, 0, 3, 3, 0),
        (living("Draining"), 0, 0, 3, 3, 0),
    ],
)
def test_each_pilot_counts_once_and_offers_its_slots_while_it_takes_jobs(
    pilots: EqualPilots, submitted: int, waiting: int, running: int, ending: int, idle_slots: int
) -> None:
    found = planned_supply(pilots, ASKED, NOBODY)
    assert (found.submitted, found.waiting, found.running) == (submitted, waiting, running)
    assert (found.ending, found.idle_slots) == (ending, idle_slots)


def test_a_pilot_on_its_way_offers_what_it_was_sent_with() -> None:
    assert planned_supply(living("Waiting", lasts=1, free_memory_mb=10), ASKED, NOBODY).resource == SENT


@pytest.mark.parametrize(("lasts", "cpu_time"), [(3, 800), (2, 500), (1, 100)])
def test_a_running_pilot_offers_the_time_and_memory_that_it_has_left(lasts: int, cpu_time: int) -> None:
    pilots = living("Running", lasts=lasts, busy=1, free_memory_mb=3_000, idle_node='[["gpunumber",0]]')
    offered = planned_supply(pilots, ASKED, NOBODY).resource
    assert offered is not None
    assert (offered.cpu_time, offered.processors, offered.memory_mb) == (cpu_time, 3, 3_000)
    assert offered.node == (("gpunumber", 0),)


@pytest.mark.parametrize("sharing", [True, False])
def test_a_private_pilot_takes_other_jobs_of_its_group_while_the_group_shares_them(*, sharing: bool) -> None:
    mine = msgspec.structs.replace(SENT, generic=False, owner_group="g", job_sharing=not sharing)
    pilots = living("Waiting", resource=msgspec.json.encode(mine).decode())
    offered = planned_supply(pilots, ASKED, frozenset({("v", "g")} if sharing else ())).resource
    assert offered is not None
    assert offered.job_sharing is sharing


@pytest.mark.parametrize("resource", ["", '{"cpu_time": "much"}'])
def test_of_pilots_whose_resource_is_not_known_none_is_told(resource: str) -> None:
    assert planned_supply(living("Running", resource=resource), ASKED, NOBODY).resource is None
