"""A service is up only if each partition of each of its consumers is served, and each of its loops goes on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wms.cli.health import _children, _supervisor, row, service_parts
from wms.cli.service_health import Heartbeat, summed_up
from wms.embedded.supervisor import ChildState, SupervisorState
from wms.runtime import clock

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


def state(*beats: Heartbeat) -> tuple[str, str]:
    (part, *_) = service_parts(beats, NOW)
    shown = row(part)
    return str(shown[1]), str(shown[-1])


def test_one_whose_probes_come_back_is_up() -> None:
    (part,) = service_parts([beat(probe(0, 3.0), probe(1, 8.5))], NOW)
    assert part.up
    assert part.probe_ms == 8.5
    assert part.note == "handled 7"


def test_one_with_a_silent_partition_is_not_up() -> None:
    assert state(beat(probe(0), probe(1, silent=12))) == ("STUCK", "q 1: no probe came back for 12 s")


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


def test_an_honest_batch_of_half_a_minute_is_busy_and_one_that_stands_still_is_stuck() -> None:
    assert handled(30, 2) == ("busy", "q 1: at one batch for 30 s")
    assert handled(30, 12) == ("STUCK", "q 1: no probe came back for 30 s")
    assert handled(9, 9) == ("STUCK", "q 1: nothing was read for 9 s")
    assert handled(2, 1) == ("STUCK", "q 1: nothing was read for 2 s")


def test_one_that_does_not_read_what_is_its_own_is_not_up() -> None:
    reader = {"partition": 1, "reading": False, "stalled": True, "served_seconds_ago": 9.0}
    stuck = beat(probe(0), probe(1, silent=9), partitions={"q": [reader]})
    assert state(stuck) == ("STUCK", "q 1: no reader is open for 9 s")


def test_a_partition_that_is_nobodys_is_told() -> None:
    assert state(beat(probe(0))) == ("STUCK", "q 1: nobody reads it")
    assert state(beat(probe(0)), beat(probe(1))) == ("up", "handled 7")
    assert state(beat(up_for=2)) == ("up", "handled 7"), "one that has just begun takes its own soon"


def test_a_loop_that_stands_still_is_told() -> None:
    stuck = beat(probe(0), probe(1), troubles={"reasons": "at one round for 40 s"})
    assert state(stuck) == ("STUCK", "reasons at one round for 40 s")


def test_one_without_a_heart_is_down() -> None:
    assert state(beat(probe(0), probe(1), alive=False)) == ("DOWN", "no heartbeat for 0s")


def test_a_heartbeat_of_an_earlier_version_is_read() -> None:
    old = Heartbeat(
        service="matcher", alive=True, pid=1, started_at=NOW, heartbeat_at=NOW, health={"lag": {"a": 4}}
    )
    (part,) = service_parts([old], NOW)
    assert (part.up, part.lag) == (True, 4)


def test_of_many_troubles_the_first_are_named() -> None:
    assert summed_up(["a", "b", "c", "d", "e"]) == "a; b; c; 2 more"


def supervised(age: float = 0.0, pid: int | None = 7, **more: Any) -> SupervisorState:
    children = {"matcher": ChildState(pid=pid, starts=2, log="/data/services/matcher/matcher.log")}
    return SupervisorState(pid=1, system="s", children=children, written_at=clock.timestamp() - age, **more)


def test_a_supervisor_is_told_of_when_something_is_wrong_with_it() -> None:
    assert list(_supervisor(supervised())) == []
    (stale,) = _supervisor(supervised(age=60))
    assert not stale.up
    assert "has not written its state" in stale.problems[0]
    (failed,) = _supervisor(supervised(failing={"keep matcher": "OSError: full"}))
    assert failed.problems == ("keep matcher failed and goes on: OSError: full",)


def test_a_service_that_runs_and_never_beat_is_not_up() -> None:
    (part,) = _children(supervised(), [], Path("/data"))
    assert (part.up, part.running) == (False, True)
    assert part.note == "no heartbeat; see services/matcher/matcher.log"
    (dead,) = _children(supervised(pid=None), [], Path("/data"))
    assert (dead.up, dead.running) == (False, False)
