"""Payloads with files by URL: what they find, what arrives of what they leave, and what ends their transfers."""

import asyncio
import hashlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import pytest
import pytest_asyncio

from services.job_agent.payload.file_staging import FileStaging, lease_over, measured_hosts
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.workplace import Workplace
from tests.contract.transfer.faulty_web_server import FaultyWebServer, faulty_web_server
from tests.contract.transfer.storages import LIMITS, Nginx
from tests.services.job_agent.payload.processes import ISOLATIONS
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.jobdesc.staged_file import InputFile, OutputFile
from wms.transfer import open_store
from wms.transfer.access_rules import AccessRules
from wms.transfer.fetching import Transferred
from wms.transfer.movers import TransferSettings

_ids = itertools.count(1)
New = Callable[..., Payload]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files").resolve()


@pytest.fixture(scope="module")
def transfers(files: Path) -> TransferSettings:
    access = AccessRules(directories=[str(files)], inner_hosts=["localhost", "127.0.0.1"])
    return TransferSettings(access=access, limits=LIMITS)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, transfers: TransferSettings
) -> AsyncIterator[Workplace]:
    async with Workplace(
        root=tmp_path_factory.mktemp("agent") / "run",
        store=open_store(f"file://{tmp_path_factory.mktemp('store')}"),
        site=SiteName("SITE"),
        pilot_id=PilotId("pilot-1"),
        isolation=request.param,
        transfers=transfers,
    ) as entered:
        yield entered


@pytest.fixture
def new(workplace: Workplace) -> New:
    def make(*argv: str, **description: object) -> Payload:
        asked = JobDescription(executable=argv[0], arguments=argv[1:], **description)  # type: ignore[arg-type]
        return Payload(workplace, JobId(next(_ids)), Epoch(1), asked)

    return make


@pytest_asyncio.fixture(loop_scope="session")
async def lying() -> AsyncIterator[FaultyWebServer]:
    async with faulty_web_server() as each:
        yield each


def wanted(name: str, source: Path | str, **more: object) -> InputFile:
    url = source.as_uri() if isinstance(source, Path) else source
    return InputFile(name=name, sources=(url,), **more)  # type: ignore[arg-type]


def sent(name: str, target: Path | str, **more: object) -> OutputFile:
    url = target.as_uri() if isinstance(target, Path) else target
    return OutputFile(name=name, targets=(url,), **more)  # type: ignore[arg-type]


async def test_inputs_come_stdin_is_read_and_outputs_go(new: New, files: Path) -> None:
    (files / "program").write_text("#!/bin/sh\ncat; cat in/data > out/result; echo said >&2\n")
    (files / "data").write_bytes(b"data\n")
    (files / "cards").write_bytes(b"cards\n")
    digest = hashlib.sha256(b"data\n").hexdigest()
    payload = new(
        "sh",
        "-c",
        "mkdir out && ./program",
        inputs=(
            wanted("program", files / "program", executable=True),
            wanted("in/data", files / "data", checksum=f"sha256:{digest}", size=5),
            wanted("cards.txt", files / "cards"),
        ),
        stdin="cards.txt",
        stdout="printed/log.txt",
        output_sandbox=("printed/*",),
        outputs=(
            sent("out/result", files / "got" / "result"),
            sent("printed/log.txt", files / "got" / "log"),
        ),
    )
    outcome = await payload.run()
    assert (outcome.reason, outcome.unmatched) == (Reason(Code.DONE), ())
    assert (outcome.stdout_tail, outcome.stderr_tail) == ("cards\n", "said\n")
    assert (files / "got" / "result").read_bytes() == b"data\n"
    assert (files / "got" / "log").read_bytes() == b"cards\n"
    assert sorted(each.name for each in (files / "got").iterdir()) == ["log", "result"]
    assert len(payload.staging.fetched) == 3
    assert len(payload.staging.delivered) == 2
    await payload.clean()
    assert not payload._place.directory.exists()


@pytest.mark.parametrize(
    ("source", "more", "code", "words"),
    [
        ("missing", {}, Code.FILE_UNAVAILABLE, "No such file"),
        ("other", {"checksum": "adler32:00000001"}, Code.FILE_CORRUPT, "it has the checksum adler32:"),
        ("/etc/passwd", {}, Code.URL_REFUSED, "this site allows files below these directories"),
        ("http://169.254.169.254/meta", {}, Code.URL_REFUSED, "of its link"),
    ],
)
async def test_a_job_whose_input_cannot_come_says_why_and_never_begins(
    new: New, files: Path, source: str, more: dict[str, object], code: Code, words: str
) -> None:
    (files / "other").write_bytes(b"other")
    place = source if "://" in source else files / source
    outcome = await new("true", inputs=(wanted("a", place, **more),)).run()
    assert (outcome.reason.code, outcome.began) == (code, False)
    assert words in outcome.reason.text


async def test_a_link_of_the_site_leads_no_job_to_its_secrets(new: New, files: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    (files / "link").unlink(missing_ok=True)
    (files / "link").symlink_to(tmp_path / "token")
    outcome = await new("cat", "a", inputs=(wanted("a", files / "link"),)).run()
    assert outcome.reason.code is Code.URL_REFUSED


@pytest.mark.parametrize("name", ["../a", "/tmp/a", "a//b"])
async def test_no_input_leaves_the_directory_of_its_job(new: New, files: Path, name: str) -> None:
    (files / "other").write_bytes(b"other")
    outcome = await new("true", inputs=(wanted(name, files / "other"),)).run()
    assert (outcome.reason.code, outcome.began) == (Code.INPUT_FAILED, False)


@pytest.mark.parametrize("stdin", ["nothing", "../../x"])
async def test_a_standard_input_that_is_not_there_is_told(new: New, stdin: str) -> None:
    outcome = await new("cat", stdin=stdin).run()
    assert (outcome.reason.code, outcome.began) == (Code.INPUT_FAILED, False)
    assert "the standard input" in outcome.reason.text


async def test_a_kill_ends_a_stage_in_within_a_second(new: New, lying: FaultyWebServer) -> None:
    payload = new("true", inputs=(wanted("a", lying.url("trickle")),))
    run = asyncio.create_task(payload.run())
    while payload.staging.progress is None or not payload.staging.progress.bytes_done:
        await asyncio.sleep(0.01)
    began = time.monotonic()
    payload.kill(Reason(Code.KILLED_BY_USER))
    outcome = await run
    assert (outcome.reason.code, outcome.began) == (Code.KILLED_BY_USER, False)
    assert time.monotonic() - began < 1.0


async def test_a_stage_in_ends_with_its_lease(new: New, lying: FaultyWebServer) -> None:
    payload = new("true", inputs=(wanted("a", lying.url("trickle")),))
    payload.live_until(now() + 0.5)
    outcome = await payload.run()
    assert (outcome.reason.code, outcome.began) == (Code.LEASE_EXPIRED, False)


async def test_an_output_that_is_missing_fails_the_job_unless_it_is_optional(new: New, files: Path) -> None:
    outcome = await new("true", outputs=(sent("no", files / "no"),)).run()
    assert outcome.reason == Reason(Code.OUTPUT_FAILED, "the output 'no' is not there (NO_OUTPUT)")
    outcome = await new("true", outputs=(sent("no", files / "no", optional=True),)).run()
    assert (outcome.reason.code, outcome.missed) == (Code.DONE, ("the output 'no' is not there",))


async def test_no_output_leads_out_of_the_directory_of_its_job(new: New, files: Path) -> None:
    outcome = await new("ln", "-s", "/etc/passwd", "a", outputs=(sent("a", files / "passwd"),)).run()
    assert outcome.reason.code is Code.OUTPUT_FAILED
    assert "leads out of the job's directory" in outcome.reason.text
    assert not (files / "passwd").exists()


async def test_a_full_storage_fails_the_job_with_its_url(new: New, tmp_path: Path) -> None:
    nginx = Nginx(tmp_path)
    try:
        url = nginx.url("full/a")
        outcome = await new("touch", "a", outputs=(sent("a", url),)).run()
    finally:
        nginx.stop()
    assert outcome.reason.code is Code.OUTPUT_FAILED
    assert "the storage is full" in outcome.reason.text
    assert url in outcome.reason.text


async def test_an_attempt_without_its_lease_replaces_no_file(
    workplace: Workplace, files: Path, tmp_path: Path
) -> None:
    (files / "newer").write_bytes(b"newer")
    (tmp_path / "older").write_bytes(b"older")
    description = JobDescription(executable="true", outputs=(sent("a", files / "newer"),))
    staging = FileStaging(
        workplace.transfers, AttemptId(JobId(1), Epoch(1)), description, None, lambda: lease_over(now() - 1)
    )

    async def older(_: Iterable[str]) -> dict[str, BinaryIO]:
        return {"a": (tmp_path / "older").open("rb")}

    reason = await staging.deliver(older)
    assert reason is not None
    assert reason.code is Code.LEASE_EXPIRED
    assert (files / "newer").read_bytes() == b"newer"
    assert not [each for each in files.iterdir() if each.name.endswith(".part")]


async def test_bandwidth_and_progress_are_reported(new: New, files: Path, lying: FaultyWebServer) -> None:
    (files / "a").write_bytes(bytes(1_000))
    payload = new("true", inputs=(wanted("a", files / "a"),), outputs=(sent("a", files / "b"),))
    outcome = await payload.run()
    assert [(each.part, each.files, each.size) for each in outcome.transfers] == [
        ("stage_in", 1, 1_000),
        ("stage_out", 1, 1_000),
    ]
    payload = new("true", inputs=(wanted("a", lying.url("trickle")), wanted("b", files / "a", size=1_000)))
    run = asyncio.create_task(payload.run())
    while not (said := payload.staging.report) or not said.files_done:
        await asyncio.sleep(0.01)
    assert (said.part, said.files, said.files_done, said.bytes_total) == ("stage_in", 2, 1, None)
    payload.kill(Reason(Code.KILLED_BY_USER))
    await run
    assert payload.staging.report is None


def test_files_that_moved_side_by_side_took_less_than_their_sum() -> None:
    moved = [
        Transferred("a", 10, 2.0, "se1"),
        Transferred("b", 30, 4.0, "se1"),
        Transferred("c", 5, 1.0, "se2"),
    ]
    first, second = measured_hosts("stage_in", moved, 4)
    assert (first.host, first.files, first.size, first.seconds) == ("se1", 2, 40, 4.0)
    assert (second.host, second.seconds) == ("se2", 1.0)
    assert measured_hosts("stage_in", moved, 1)[0].seconds == 6.0
