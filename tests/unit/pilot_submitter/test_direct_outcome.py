"""How attempts of jobs that were sent directly end, by exit code and by their element's word."""

from pathlib import Path
from typing import Any

import pytest

from services.pilot_submitter.direct_outcome import result_of, verdict
from tests.unit.pilot_submitter.direct_jobs import direct
from wms.dispatch.direct import NEVER_BEGAN, STDOUT, WORK, DirectEnd
from wms.dispatch.port import PilotSighting
from wms.ids import PilotId
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

HERE = Path("/nowhere")
NOTHING = DirectEnd(directory=HERE, exit_code=None)
DESCRIPTION = JobDescription(executable="prog", success_exit_codes=(0, 5))


def seen(state: Any = "Done", **more: Any) -> PilotSighting:
    return PilotSighting(pilot_id=PilotId("p-1"), state=state, **more)


def end(code: int | None, **more: Any) -> DirectEnd:
    return DirectEnd(directory=HERE, exit_code=code, has_begun=True, **more)


@pytest.mark.parametrize(
    ("left", "sighting", "facts", "outcome", "code"),
    [
        (end(0), seen(), {}, "done", Code.DONE),
        (end(5), seen("Failed"), {}, "done", Code.DONE),
        (end(1), seen("Failed"), {}, "failed", Code.EXIT_CODE),
        (end(127), seen("Failed"), {}, "failed", Code.NOT_STARTED),
        (end(137), seen("Failed"), {}, "failed", Code.SIGNAL),
        (end(143, ended_for="told"), seen("Failed", reason="timeout"), {}, "failed", Code.WALL_LIMIT),
        (end(None), seen("Failed", reason="out_of_memory"), {}, "failed", Code.MEMORY_LIMIT),
        (end(None), seen("Failed", lost=Code.NODE_LOST), {}, "lost", Code.NODE_LOST),
        (end(143, ended_for="told"), seen("Aborted"), {}, "lost", Code.PILOT_STOPPED),
        (end(143, ended_for="lease"), seen("Failed"), {}, "lost", Code.LEASE_EXPIRED),
        (end(143), seen("Aborted"), {"stop_requested": "kill"}, "killed", Code.KILLED_BY_USER),
        (
            DirectEnd(directory=HERE, exit_code=NEVER_BEGAN),
            seen(),
            {"state": "Matched"},
            "lost",
            Code.AGENT_ERROR,
        ),
        (DirectEnd(directory=HERE, exit_code=None), seen(), {"state": "Matched"}, "lost", Code.AGENT_ERROR),
        (NOTHING, seen("Failed", staging="failed"), {"state": "Matched"}, "lost", Code.FILE_UNAVAILABLE),
        (NOTHING, seen("Failed", staging="corrupt"), {"state": "Matched"}, "lost", Code.FILE_CORRUPT),
        (NOTHING, seen("Failed", staging="corrupt"), {}, "failed", Code.FILE_CORRUPT),
        (end(0), seen("Failed", staging="failed"), {}, "failed", Code.OUTPUT_FAILED),
        (end(1), seen("Failed", staging="failed"), {}, "failed", Code.EXIT_CODE),
    ],
)
def test_each_end_has_its_outcome(
    left: DirectEnd, sighting: PilotSighting, facts: dict[str, Any], outcome: str, code: Code
) -> None:
    said = verdict(direct(**{"state": "Running", **facts}), DESCRIPTION, sighting, left)
    assert (said.outcome, said.code) == (outcome, code)


def test_what_it_left_is_stored_and_what_is_missing_named(tmp_path: Path) -> None:
    (tmp_path / WORK).mkdir()
    (tmp_path / WORK / "a.dat").write_text("data")
    (tmp_path / STDOUT).write_bytes(b"x" * 100 + b"\0end")
    store = open_store((tmp_path / "store").as_uri())
    description = JobDescription(executable="prog", output_sandbox=("*.dat", "*.root"), stdout_limit=10)
    left = DirectEnd(directory=tmp_path, exit_code=0, has_begun=True)
    result = result_of(direct(state="Running"), description, seen(), left, store)
    assert (result.outcome, result.code, result.exit_code) == ("done", Code.OUTPUT_MISSING, 0)
    assert "no file matches *.root" in result.text
    assert result.output_bytes > 0
    assert result.stdout_tail.endswith("\ufffdend")
