"""Calls of the executor: what can be sent to a site, and what comes back of it."""

import pickle
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wms.client import remote_call
from wms.client.executor import CALL_BYTES, pickled
from wms.client.job_events import concerns
from wms.errors import Rejected
from wms.ids import Epoch, JobId
from wms.job.state import Event, State
from wms.messages.events import JobEvent, JobsMoved, JobsQueued

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def remotely(directory: Path, raw: bytes) -> tuple[bool, object, str]:
    (directory / remote_call.CALL).write_bytes(raw)
    subprocess.run([sys.executable, "-I", remote_call.__file__], cwd=directory, check=True)
    outcome: tuple[bool, object, str] = pickle.loads((directory / remote_call.OUTCOME).read_bytes())
    return outcome


def test_a_call_is_made_elsewhere_and_its_value_comes_back(tmp_path: Path) -> None:
    assert remotely(tmp_path, pickled(divmod, (7, 2), {})) == (True, (3, 1), "")


def test_an_error_comes_back_with_its_traceback(tmp_path: Path) -> None:
    returned, error, trace = remotely(tmp_path, pickled(divmod, (7, 0), {}))
    assert (returned, type(error)) == (False, ZeroDivisionError)
    assert "Traceback" in trace


def test_a_module_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    raw = b"cno_such_module\nf\n."
    returned, error, _ = remotely(tmp_path, raw)
    assert not returned
    assert "no_such_module" in str(error)
    assert "files=[" in str(error)


def test_a_value_that_cannot_be_sent_back_is_told(tmp_path: Path) -> None:
    returned, error, _ = remotely(tmp_path, pickled(memoryview, (b"x",), {}))
    assert not returned
    assert "what the function returned cannot be sent back" in str(error)


def test_what_cannot_be_sent_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(Rejected, match=r"CANNOT_BE_SENT(.|\n)*cloudpickle"):
        pickled(lambda: 1, (), {})
    # The shape of a program's own function, which the library writes by its name alone.
    monkeypatch.setattr(remotely, "__module__", "__main__")
    with pytest.raises(Rejected, match="defined in the program itself"):
        pickled(remotely, (), {})
    with pytest.raises(Rejected, match="CALL_TOO_LARGE"):
        pickled(len, (bytes(CALL_BYTES),), {})


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
