"""A job that is sent directly, as examples have it."""

from typing import Any

from wms.db.direct_job import DirectJob

_USUAL: dict[str, Any] = {
    "job_id": 7,
    "attempt": 1,
    "site": "A",
    "ce": "ce",
    "pilot_id": "p-1",
    "dispatcher": "slurm",
    "vo": "lhcb",
    "owner_group": "",
    "owner": "",
    "resource": "{}",
    "slots": 1,
    "placed": "Ordered",
    "age": 1.0,
    "state": "Matched",
    "epoch": 1,
    "stop_requested": "",
    "phase": None,
    "seconds_left": 100.0,
    "is_late": False,
}


def direct(**facts: Any) -> DirectJob:
    return DirectJob(**{**_USUAL, **facts})
