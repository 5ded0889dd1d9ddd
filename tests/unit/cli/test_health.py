"""The health of a system: its services, loops and supervisor."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.heartbeats import NOW, advertiser, beat, probe, state
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.cli.__main__ import run
from wms.cli.health import _children, _supervisor, service_parts
from wms.embedded.supervisor import ChildState, SupervisorState
from wms.files import write_secret
from wms.runtime import clock
from wms.runtime.service_health import Heartbeat


def test_one_whose_probes_come_back_is_up() -> None:
    (part,) = service_parts([beat(probe(0, 3.0), probe(1, 8.5))], NOW)
    assert part.up
    assert part.probe_ms == 8.5
    assert part.note == "handled 7"


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


def test_a_stopped_advertiser_is_told_beside_those_of_other_sites() -> None:
    up, dead = service_parts([advertiser("glasgow"), advertiser("umea", alive=False)], NOW)
    assert (up.up, up.note) == (True, "handled 0, owner glasgow")
    assert (dead.up, dead.problems) == (False, ("no heartbeat for 0s, owner umea",))


def test_who_goes_through_a_gateway_is_told_of_it_and_of_no_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "client.toml").write_text(
        '[gateway]\nurl = "http://127.0.0.1:1"\n[auth]\ntoken_file = "none"\n'
    )
    assert run(["status", "--data", str(tmp_path)]) == 3
    generate_keys(tmp_path / "keys")
    token = mint(
        load_key(tmp_path / "keys/issuer.pem"),
        Claims(kind="user", owner="bob", group="g", vo="v"),
        60,
        clock.timestamp(),
    )
    write_secret(tmp_path / "none", token)
    assert run(["status", "--data", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert re.search(r"^gateway +DOWN", told, re.MULTILINE)
    assert "broker" not in told
