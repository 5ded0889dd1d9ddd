"""Files by URL that lie, never end, drip or lead astray, and targets that refuse: the job says so by a code, and others run as usual."""

import hashlib
from collections.abc import AsyncIterator, Mapping

import pytest_asyncio

from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.lying_server import CONTENT, LyingServer, lying_server
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription, select
from wms.jobdesc.staged_file import InputFile, OutputFile

OWNER = "mallory"
OVER = ("Held", "Failed", "Done")


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[LyingServer]:
    async with lying_server() as running:
        yield running


def reading(url: str, **promised: object) -> JobDescription:
    one = InputFile(name="data", sources=(url,), **promised)  # type: ignore[arg-type]
    return JobDescription(executable="/bin/cat", arguments=("data",), cpu_time=600, inputs=(one,))


def writing(url: str) -> JobDescription:
    program = ("-c", "head -c 1000000 /dev/zero > result")
    one = OutputFile(name="result", targets=(url,))
    return JobDescription(
        executable="/bin/sh", arguments=program, cpu_time=600, max_attempts=1, outputs=(one,)
    )


async def told(client: Client, jobs: Mapping[str, JobDescription]) -> dict[str, str]:
    """Submit jobs, wait until each is over, and return the reason of each by its name."""
    ids = {name: (await client.submit(job)).ids[0][0] for name, job in jobs.items()}

    async def over() -> bool:
        counts = await client.counts(select(list(ids.values())))
        return sum(counts.get(each, 0) for each in OVER) == len(ids)

    await eventually(over, PATIENCE_SECONDS)
    found = {name: (await client.show(each)).job.reason for name, each in ids.items()}
    await client.kill(select(everything=True))
    return found


async def test_inputs_that_lie_never_end_or_lead_astray_hold_their_jobs(
    target: Target, innocent: Innocent, server: LyingServer
) -> None:
    checksum = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    good = server.url("good/data")
    jobs = {
        "smaller than told": (reading(good, size=len(CONTENT) + 1), "FILE_UNAVAILABLE"),
        "larger than told": (reading(good, size=len(CONTENT) - 1), "FILE_CORRUPT"),
        "another": (reading(good, checksum="sha256:" + "0" * 64), "FILE_CORRUPT"),
        "endless": (reading(server.url("endless/data")), "FILE_CORRUPT"),
        "endless, size told": (
            reading(server.url("endless/data"), size=18, checksum=checksum),
            "FILE_CORRUPT",
        ),
        "drip": (reading(server.url("drip/data")), "FILE_UNAVAILABLE"),
        "silent": (reading(server.url("silent/data")), "FILE_UNAVAILABLE"),
        "loop": (reading(server.url("loop/data")), "FILE_UNAVAILABLE"),
        "away": (reading(server.url("away/data")), "FILE_UNAVAILABLE"),
        "inside": (reading(server.url("inside/data")), "URL_REFUSED"),
        "other": (reading(server.url("other/data")), "URL_REFUSED"),
        "good": (reading(good, size=len(CONTENT), checksum=checksum), "DONE"),
    }
    async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
        reasons = await told(client, {name: job for name, (job, _) in jobs.items()})
    assert reasons == {name: reason for name, (_, reason) in jobs.items()}


async def test_neither_services_nor_files_outside_of_the_rules_are_read_or_written(
    target: Target, innocent: Innocent
) -> None:
    broker = target.system.broker
    assert broker is not None
    sockets = [path.as_uri() for path in target.root.rglob("*") if path.is_socket()]
    key = next((target.root / "keys").iterdir())
    link = target.root / "files" / "link"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(key)
    refused = [
        *sockets[:3],
        "file:///etc/passwd",
        key.as_uri(),
        f"file://{target.root}/files/../keys/{key.name}",
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.2:1/data",
        f"http://127\u30020\u30020\u30021:{broker.port}/data",
        "http://[::1]:1/data",
        "http://[::ffff:127.0.0.1]:1/data",
    ]
    closed = [f"http://127.0.0.1:{broker.port}/data", "http://2130706433:1/data"]
    before = key.read_bytes()
    async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
        read = await told(client, {url: reading(url) for url in [*refused, *closed, link.as_uri()]})
        # A target is replaced as a whole: what a link in an allowed directory leads to is not written.
        written = await told(client, {url: writing(url) for url in [*refused, *closed, link.as_uri()]})
    # What the link leads to is not there in the pilot's view.
    assert read == dict.fromkeys(refused, "URL_REFUSED") | dict.fromkeys(
        [*closed, link.as_uri()], "FILE_UNAVAILABLE"
    )
    assert written == dict.fromkeys(refused + closed, "OUTPUT_FAILED") | {link.as_uri(): "DONE"}
    assert not link.is_symlink()
    assert key.read_bytes() == before


async def test_targets_that_are_full_refuse_or_never_answer_fail_their_jobs(
    target: Target, innocent: Innocent, server: LyingServer
) -> None:
    kinds = ("full", "refuse", "busy", "silent", "loop", "inside", "away")
    async with Client.connect(target.settings(OWNER)) as client, innocent.beside():
        reasons = await told(client, {kind: writing(server.url(f"{kind}/result")) for kind in kinds})
    assert reasons == dict.fromkeys(kinds, "OUTPUT_FAILED")
