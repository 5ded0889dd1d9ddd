"""Heartbeats of services, and what a supervisor says of its children."""

from datetime import UTC, datetime, timedelta
from typing import Any

from wms.cli.health import row, service_parts
from wms.runtime.service_health import Heartbeat

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def probe(partition: int, trip: float | None = 5.0, silent: float = 1.0) -> dict[str, Any]:
    return {"partition": partition, "round_trip_ms": trip, "silent_seconds": silent}


def beat(*probes: dict[str, Any], alive: bool = True, up_for: float = 60, **facts: Any) -> Heartbeat:
    told = {"topic": "wms.job.queries", "partitions": 2, "probes": probes, "passed": 3}
    return Heartbeat(
        service="job_manager",
        alive=alive,
        pid=17,
        started_at=NOW - timedelta(seconds=up_for),
        heartbeat_at=NOW,
        health={"lag": {"q": 0}, "handled": {"q": 10}, "probes": {"q": told}, **facts},
    )


def advertiser(owner: str, *, alive: bool = True, **troubles: str) -> Heartbeat:
    health = {"owner": owner, "troubles": troubles}
    return Heartbeat(
        service="advertiser", alive=alive, pid=1, started_at=NOW, heartbeat_at=NOW, health=health
    )


def state(*beats: Heartbeat) -> tuple[str, str]:
    (part, *_) = service_parts(beats, NOW)
    shown = row(part)
    return str(shown[1]), str(shown[-1])


def handled(busy: float, step: float) -> tuple[str, str]:
    reader = {
        "partition": 1,
        "reading": True,
        "stalled": True,
        "served_seconds_ago": busy,
        "busy_seconds": busy,
    }
    reader["step_seconds_ago"] = step
    return state(beat(probe(0), probe(1, silent=busy), partitions={"q": [reader]}))
