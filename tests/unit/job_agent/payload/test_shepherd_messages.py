"""What agent and shepherd tell each other: each message of the shepherd is read as what it is."""

import json
from typing import Any

import msgspec
import pytest

from services.job_agent.payload.shepherd_messages import (
    Contained,
    Exited,
    FailedToStart,
    FromShepherd,
    Pong,
    SpawnOrder,
    Started,
    StrayEnded,
    decoded,
    encoded,
)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"is": "started", "id": 1, "pid": 7, "container": 0}, Started(id=1, pid=7)),
        (
            {"is": "failed_to_start", "id": 1, "error": "no such file", "fault": "job"},
            FailedToStart(id=1, error="no such file", fault="job"),
        ),
        (
            {"is": "stray", "id": 1, "user_seconds": 0.5, "system_seconds": 0.25},
            StrayEnded(id=1, user_seconds=0.5, system_seconds=0.25),
        ),
        ({"is": "exited", "id": 1, "signal": 9, "expired": True}, Exited(id=1, signal=9, expired=True)),
        ({"is": "contained", "error": ""}, Contained(error="")),
        ({"is": "pong", "id": 1}, Pong(id=1)),
    ],
)
def test_a_line_is_read_as_its_message(said: dict[str, Any], message: FromShepherd) -> None:
    assert decoded(json.dumps(said).encode()) == message


def test_a_line_of_an_unknown_kind_is_a_fault() -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded(b'{"is": "else", "id": 1}')


def test_an_order_is_one_line_whatever_its_texts_hold() -> None:
    order = SpawnOrder(argv=("a\nb",), cwd="/", env={"A": "\n"}, stdout="o", stderr="e")
    line = encoded({"op": "spawn", "id": 1, **msgspec.structs.asdict(order)})
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["argv"] == ["a\nb"]
