"""The payload of a job that is sent directly."""

from pathlib import Path
from typing import Any

import pytest

from services.pilot_submitter.direct_payload import payload_of
from tests.unit.pilot_submitter.direct_jobs import direct
from wms.dispatch.direct import DirectPayload
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.transfer import keep, open_store


async def payload(place: Path, **said: Any) -> DirectPayload:
    store = open_store((place / "store").as_uri())
    return await payload_of(direct(), JobDescription(executable="prog", **said), store, place / "inputs")


async def test_its_environment_is_its_own_and_what_tells_it_where_it_is(tmp_path: Path) -> None:
    made = await payload(
        tmp_path, arguments=("a b",), environment={"X": "1", "WMS_JOB_ID": "forged"}, cpu_time=60
    )
    assert made.argv == ("prog", "a b")
    assert made.cpu_seconds == 60
    assert made.environment["X"] == "1"
    assert made.environment["WMS_JOB_ID"] == "7"
    assert set(made.environment) == {
        "PATH", "LANG", "X", "WMS_JOB_ID", "WMS_EPOCH", "WMS_SITE", "WMS_CE", "WMS_PILOT", "WMS_PROCESSORS",
    }  # fmt: skip


async def test_inputs_are_unpacked_anew(tmp_path: Path) -> None:
    store = open_store((tmp_path / "store").as_uri())
    ref = keep(store, {"in.txt": b"data"})
    box = SandboxRef(sha256=ref.sha256, size=ref.size, directory="17")
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "left behind").touch()
    made = await payload(tmp_path, input_sandbox=(box,))
    found = [str(path.relative_to(made.inputs)) for path in made.inputs.rglob("*") if path.is_file()]
    assert found == ["17/in.txt"]


async def test_what_cannot_be_had_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected):
        await payload(tmp_path, input_sandbox=(SandboxRef(sha256="0" * 64, size=1),))


async def test_inputs_that_take_more_disk_than_the_job_asks_for_are_refused_in_time(tmp_path: Path) -> None:
    store = open_store((tmp_path / "store").as_uri())
    ref = keep(store, {"zeros": bytes(3 << 20)})
    boxes = tuple(SandboxRef(sha256=ref.sha256, size=ref.size, directory=name) for name in ("1", "2"))
    with pytest.raises(Rejected) as refused:
        await payload(tmp_path, input_sandbox=boxes, disk_mb=5)
    assert refused.value.code == "DISK_LIMIT"
    assert sum(path.stat().st_size for path in (tmp_path / "inputs").rglob("zeros")) == 3 << 20
