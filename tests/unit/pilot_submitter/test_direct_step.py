"""What the holder of a direct job's lease does next."""

from itertools import product
from typing import Any

import pytest

from services.pilot_submitter.direct_step import PATIENCE_SECONDS, next_step
from tests.unit.pilot_submitter.direct_jobs import direct
from wms.dispatch.port import PilotSighting
from wms.ids import PilotId
from wms.job.reasons import Code


def seen(state: Any, **more: Any) -> PilotSighting:
    return PilotSighting(pilot_id=PilotId("p-1"), state=state, **more)


QUEUED, RUNS, OVER = seen("Waiting", reference="7"), seen("Running", reference="7"), seen("Done")
UNKNOWN = seen("Aborted", lost=Code.PILOT_FORGOTTEN)
SENT = {"phase": "accepted", "placed": "Sent"}


@pytest.mark.parametrize(
    ("facts", "sighting", "step"),
    [
        ({}, None, "ask"),
        ({"age": PATIENCE_SECONDS + 1}, None, "give up"),
        ({"placed": "Sent"}, None, "forget"),
        ({"phase": "offered"}, None, "accept"),
        ({"phase": "offered", "is_late": True}, None, "decline"),
        ({"phase": "accepted"}, UNKNOWN, "send"),
        ({"phase": "accepted"}, None, "renew"),
        ({"phase": "accepted"}, QUEUED, "note"),
        ({"phase": "accepted"}, OVER, "note"),
        ({"phase": "accepted", "is_late": True}, UNKNOWN, "decline"),
        ({"phase": "accepted", "stop_requested": "kill"}, UNKNOWN, "decline"),
        (SENT, QUEUED, "renew"),
        (SENT, RUNS, "start"),
        (SENT, OVER, "finish"),
        (SENT, UNKNOWN, "finish"),
        ({**SENT, "state": "Running"}, RUNS, "renew"),
        ({**SENT, "state": "Running", "is_late": True}, RUNS, "renew"),
        ({**SENT, "is_late": True}, QUEUED, "cancel"),
        ({**SENT, "is_late": True}, RUNS, "start"),
        ({**SENT, "stop_requested": "kill"}, QUEUED, "cancel"),
        ({**SENT, "state": "Running", "stop_requested": "hold"}, RUNS, "cancel"),
    ],
)
def test_each_situation_has_its_step(
    facts: dict[str, Any], sighting: PilotSighting | None, step: str
) -> None:
    assert next_step(direct(**facts), sighting) == step


def test_nothing_is_sent_or_started_without_a_lease_and_nothing_is_sent_twice() -> None:
    sightings = (None, UNKNOWN, QUEUED, RUNS, OVER)
    for phase, placed, late, stop, sighting in product(
        (None, "offered", "accepted"), ("Ordered", "Sent"), (False, True), ("", "kill"), sightings
    ):
        job = direct(phase=phase, placed=placed, is_late=late, stop_requested=stop)
        step = next_step(job, sighting)
        if step in ("send", "start"):
            assert phase == "accepted"
        if step == "send":
            assert (placed, late, stop, sighting) == ("Ordered", False, "", UNKNOWN)
