"""Files by URL of jobs that are sent directly: a real ARC element moves them, other elements refuse such jobs."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.pilot_submitter.direct_staging import direct_fault, staged_files
from tests.contract.dispatch.grounds import SHELL, ArcGround, FakeHTCondorGround
from tests.contract.transfer.storages import Nginx
from tests.middleware import Sites
from tests.services.pilot_submitter.direct import TRUSTING, DirectSubmitter, direct_job, local
from tests.services.pilot_submitter.elements import Site
from wms.dispatch.arc import ArcDispatcher
from wms.dispatch.arc_rest import ArcEndpoint
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.jobdesc.staged_file import InputFile, OutputFile
from wms.transfer.access_rules import AccessRules
from wms.transfer.movers import TransferSettings

HERE = AccessRules(inner_hosts=["localhost"])
STAGES = ArcDispatcher(ArcEndpoint("https://localhost:9/arex"), SHELL, stages=True)
URL = "https://store.example.org/data"


def described(**said: Any) -> JobDescription:
    return JobDescription(executable="prog", **said)


def test_of_each_input_the_first_replica_is_taken_that_can_be_fetched() -> None:
    sources = ("lfn:/data/in", "https://127.0.0.1/in", f"{URL}/in", f"{URL}/again")
    file = InputFile(name="in", sources=sources, size=3, executable=True)
    found = staged_files(described(inputs=(file,), success_exit_codes=(0, 2)), STAGES, AccessRules())
    ((name, url, size, executable),) = [
        (each.name, each.url, each.size, each.executable) for each in found.inputs
    ]
    assert (name, url, size, executable) == ("in", f"{URL}/in", 3, True)
    assert found.success_exit_codes == (0, 2)


def test_an_output_goes_to_all_of_its_targets() -> None:
    file = OutputFile(name="out", targets=(f"{URL}/a", f"{URL}/b"))
    found = staged_files(described(outputs=(file,)), STAGES, AccessRules())
    assert [(each.name, each.url) for each in found.outputs] == [("out", f"{URL}/a"), ("out", f"{URL}/b")]


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [(("out/*.root",), True), (("out",), True), (("*.log", "other"), False), ((), False)],
)
def test_an_output_that_the_sandbox_has_too_is_kept(patterns: tuple[str, ...], *, kept: bool) -> None:
    file = OutputFile(name="out/a.root", targets=(f"{URL}/a",))
    (found,) = staged_files(
        described(outputs=(file,), output_sandbox=patterns), STAGES, AccessRules()
    ).outputs
    assert found.kept is kept


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"inputs": (InputFile(name="in", sources=("http://127.0.0.1/in",)),)}, "the node's own"),
        ({"inputs": (InputFile(name="in", sources=("file:///etc/passwd",)),)}, "directories: none"),
        ({"outputs": (OutputFile(name="out", targets=("lfn:/data/out",)),)}, "its output out: lfn"),
        ({"outputs": (OutputFile(name="out", targets=(f"{URL}/o",), optional=True),)}, "optional"),
    ],
)
def test_what_the_site_or_its_element_cannot_do_is_refused_with_the_reason(
    files: dict[str, Any], words: str
) -> None:
    with pytest.raises(Rejected, match="URL_REFUSED") as refused:
        staged_files(described(**files), STAGES, AccessRules())
    assert words in refused.value.message
    assert "sandboxes" in refused.value.remedy


def test_an_element_that_is_not_said_to_stage_refuses_files_by_url() -> None:
    job = described(outputs=(OutputFile(name="out", targets=(f"{URL}/o",)),))
    assert "`staging`" in direct_fault(
        job, ArcDispatcher(ArcEndpoint("https://h/arex"), SHELL), AccessRules()
    )
    assert direct_fault(job, STAGES, AccessRules()) == ""
    assert direct_fault(described(), ArcDispatcher(ArcEndpoint("https://h/arex"), SHELL), AccessRules()) == ""


@pytest.mark.parametrize("kind", ["local", "htcondor"])
async def test_elsewhere_the_placement_fails_with_the_reason(site: Site, kind: str) -> None:
    dispatcher = local(site) if kind == "local" else FakeHTCondorGround(site.place / "condor").dispatcher()
    submitter = DirectSubmitter(site, dispatcher)
    job_id = await direct_job(site, "cat", "in", inputs=[{"name": "in", "sources": [f"{URL}/in"]}])
    await submitter.until(job_id, "Checking")
    assert await submitter.last(job_id) == ("Failed", "NO_ELEMENT")
    (row,) = await site.world.sql("select reason_text from placement where job_id = $1", job_id)
    assert "nothing moves files by URL there" in row["reason_text"]
    assert await site.pilots() == []
    await submitter.audited()


# --- on a real ARC element ----------------------------------------------------------------------------------------


@pytest.fixture
def storage() -> Iterator[Nginx]:
    """Yield a storage in a directory that servers of other users may enter."""
    place = Path(tempfile.mkdtemp(prefix="wms-storage-", dir="/tmp"))
    place.chmod(0o755)
    server = Nginx(place)
    yield server
    server.stop()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def arc(site: Site, testbed: Sites) -> DirectSubmitter:
    ground = ArcGround(testbed)
    dispatcher = ArcDispatcher(ground.element(testbed.told["arc"]["url"], "main"), SHELL, stages=True)
    return DirectSubmitter(site, dispatcher, terms=TRUSTING._replace(transfers=TransferSettings(access=HERE)))


def ends(storage: Nginx, to: str, **more: Any) -> dict[str, Any]:
    """Return files by URL: an input, and an output with this path at the storage."""
    data = storage.read("in.txt") or b""
    source = {
        "name": "in.txt",
        "sources": [storage.url("in.txt")],
        "size": len(data),
        "checksum": f"sha256:{hashlib.sha256(data).hexdigest()}",
        **more,
    }
    return {"inputs": [source], "outputs": [{"name": "out.txt", "targets": [storage.url(to)]}]}


@pytest.mark.testbed
@pytest.mark.timeout(400)
async def test_a_real_arc_element_moves_the_files(arc: DirectSubmitter, site: Site, storage: Nginx) -> None:
    storage.write("in.txt", b"brought")
    program = ("sh", "-c", "cat in.txt; (cat in.txt; echo ' back') > out.txt; exit $1", "sh")
    good = await direct_job(site, *program, "3", success_exit_codes=[0, 3], **ends(storage, "good.txt"))
    bad = await direct_job(site, *program, "1", max_attempts=1, **ends(storage, "bad.txt"))
    shut = await direct_job(site, *program, "0", max_attempts=1, **ends(storage, "closed/out.txt"))
    lost = await direct_job(site, *program, "0", **ends(storage, "l.txt", sources=[storage.url("no")]))
    torn = await direct_job(site, *program, "0", **ends(storage, "t.txt", checksum=f"md5:{'0' * 32}"))
    found = {
        good: ("DONE", "Done"),
        bad: ("EXIT_CODE", "Failed"),
        shut: ("OUTPUT_FAILED", "Failed"),
        lost: ("FILE_UNAVAILABLE", "Held"),
        # As it was seen to run, or was not.
        torn: ("FILE_CORRUPT", "Held", "Failed"),
    }
    for job_id, (reason, *ends_as) in found.items():
        await arc.until(job_id, *ends_as, within=240)
        attempt = (await site.world.attempts(job_id))[-1]
        assert attempt["reason"] == reason, attempt
    assert storage.read("good.txt") == b"brought back\n"
    assert storage.names() == ["good.txt", "in.txt"]
    (attempt,) = await site.world.attempts(good)
    assert (attempt["exit_code"], attempt["stdout_tail"]) == (3, "brought")
    await arc.audited()
