"""Stagers as processes: what they do counts against their job, and whatever a payload swaps leads them nowhere."""

import asyncio
import itertools
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.outcome import PayloadOutcome
from services.job_agent.payload.run import Payload
from services.job_agent.payload.shepherd import now
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.stager_process import StagerProcess
from services.job_agent.payload.workdir import SCRATCH, WORK, Workdir
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import CAN_ISOLATE, ISOLATIONS
from wms.errors import Unavailable
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.transfer import SandboxStore, download, open_store, upload

MIB = 1024 * 1024
KEY = b"the key of the system"
_ids = itertools.count(1)
New = Callable[..., Payload]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with a key in it that the agent may read."""
    data = tmp_path_factory.mktemp("data")
    (data / "keys").mkdir()
    (data / "keys" / "issuer.pem").write_bytes(KEY)
    return data


@pytest.fixture(scope="module")
def store(data: Path) -> SandboxStore:
    return open_store(f"file://{data}/sandboxes")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, data: Path, store: SandboxStore
) -> AsyncIterator[Workplace]:
    async with _workplace(data / request.param.mode / "jobs", store, request.param) as entered:
        yield entered


def _workplace(root: Path, store: SandboxStore, isolation: PayloadIsolation) -> Workplace:
    return Workplace(root=root, store=store, site=SiteName("S"), pilot_id=PilotId("p"), isolation=isolation)


def payload(workplace: Workplace, *argv: str, **description: object) -> Payload:
    asked = JobDescription(executable=argv[0], arguments=argv[1:], **description)  # type: ignore[arg-type]
    return Payload(workplace, JobId(next(_ids)), Epoch(1), asked)


async def test_archives_of_zeros_end_at_the_limit_of_disk(workplace: Workplace, store: SandboxStore) -> None:
    ref = await upload(store, {"zeros": bytes(30 * MIB)})
    boxes = tuple(SandboxRef(sha256=ref.sha256, size=ref.size, directory=str(n)) for n in range(5))
    bomb = payload(workplace, "true", input_sandbox=boxes, disk_mb=40)
    outcome = await bomb.run()
    assert (outcome.reason.code, outcome.began) == (Code.DISK_LIMIT, False)
    taken = sum(path.stat().st_blocks * 512 for path in bomb._place.directory.rglob("*"))
    assert taken < 48 * MIB
    await bomb.clean()
    assert not bomb._place.directory.exists()


async def test_a_stager_serves_again_after_its_end_and_not_after_its_time(workplace: Workplace) -> None:
    place = Workdir(
        workplace.root,
        JobId(next(_ids)),
        Epoch(1),
        JobDescription(executable="x"),
        SpareWorkdirs(workplace.root, (WORK, SCRATCH)),
        owner=workplace.owner,
    )
    place.make()
    stager = StagerProcess(workplace, place, AttemptId(JobId(1), Epoch(1)), PayloadLimits())
    link = await stager.opened(None)
    await stager.run(link.give, {"a": "1"}, ())
    assert (place.scratch / "a").stat().st_uid == (workplace.owner or (os.geteuid(), 0))[0]
    assert link is await stager.opened(None)
    stager.kill()
    assert stager._process is not None
    await stager._process.ended
    with pytest.raises(Unavailable):
        await stager.run(link.clear)
    await stager.close()
    with pytest.raises(Unavailable):
        await stager.opened(now() - 1)
    assert await stager.clear()
    await stager.close()
    assert place.remove()


# --- swaps ---

SWAPPED = ("a", "a/b", "a/b/file")
"""The last component of an output, and each of its parents."""
KINDS = ("link", "link to a file", "directory", "fifo", "device")
SWAP = """
import ctypes, os, stat, sys
place, kind, key = sys.argv[1:]
os.makedirs("a/b")
open("a/b/file", "w").write("mine")
open("plain", "w").write("plain")
other = place + ".other"
if kind == "link":
    os.symlink(os.path.dirname(key), other)
elif kind == "link to a file":
    os.symlink(key, other)
elif kind == "directory":
    os.mkdir(other)
elif kind == "fifo":
    os.mkfifo(other)
else:
    try:
        os.mknod(other, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except OSError:
        os.symlink("/dev/zero", other)
assert ctypes.CDLL(None).renameat2(-100, place.encode(), -100, other.encode(), 2) == 0
"""


@pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")
async def test_whatever_stands_in_the_place_of_an_output_leads_to_no_key(
    data: Path, store: SandboxStore, tmp_path: Path
) -> None:
    root = data / "swaps" / "jobs"
    async with _workplace(root, store, PayloadIsolation(mode="required", hidden=(str(data),))) as workplace:
        for place, kind in itertools.product(SWAPPED, KINDS):
            swapping = payload(
                workplace,
                sys.executable,
                "-c",
                SWAP,
                place,
                kind,
                str(data / "keys" / "issuer.pem"),
                output_sandbox=("**", "a/b/file", "a/issuer.pem", "a/b/issuer.pem"),
            )
            async with asyncio.timeout(60):
                outcome = await swapping.run()
                await swapping.clean()
            assert outcome.reason.code is Code.DONE, (outcome.reason, outcome.stderr_tail)
            kept = await _outputs(store, outcome, tmp_path / f"{place}-{kind}".replace("/", "-"))
            assert kept["plain"] == b"plain"
            assert KEY not in kept.values()
            assert not swapping._place.directory.exists()
    assert (data / "keys" / "issuer.pem").read_bytes() == KEY


@pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")
async def test_a_parent_that_is_swapped_on_and_on_while_outputs_are_packed_gives_no_key_away(
    data: Path, store: SandboxStore, tmp_path: Path
) -> None:
    """The swaps come from outside of the sandbox, as by a descriptor that another payload holds."""
    async with _workplace(
        data / "exchanged" / "jobs", store, PayloadIsolation(mode="required", hidden=(str(data),))
    ) as workplace:
        script = f"mkdir zz; touch zz/issuer.pem; ln -s {data}/keys other; seq 2000 | xargs touch"
        victim = payload(workplace, "sh", "-c", script, output_sandbox=("**", "zz/issuer.pem"))
        stop = threading.Event()
        exchanging = threading.Thread(target=_exchange, args=(victim._place.work, stop))
        exchanging.start()
        try:
            outcome = await victim.run()
        finally:
            stop.set()
            exchanging.join()
        if outcome.output:
            assert KEY not in (await _outputs(store, outcome, tmp_path / "got")).values()
        await victim.clean()
    assert (data / "keys" / "issuer.pem").read_bytes() == KEY


def _exchange(work: Path, stop: threading.Event) -> None:
    """Swap the directory `zz` with a link to the keys, again and again."""
    import ctypes

    libc = ctypes.CDLL(None)
    while not stop.is_set():
        libc.renameat2(-100, bytes(work / "zz"), -100, bytes(work / "other"), 2)


async def _outputs(store: SandboxStore, outcome: PayloadOutcome, dest: Path) -> dict[str, bytes]:
    assert outcome.output is not None
    dest.mkdir()
    await download(store, outcome.output.sha256, dest)
    return {str(path.relative_to(dest)): path.read_bytes() for path in dest.rglob("*") if path.is_file()}


# --- what is done outside of sandboxes ---

EVENTS = frozenset(
    {
        "open",
        "os.listdir",
        "os.scandir",
        "os.mkdir",
        "os.rmdir",
        "os.remove",
        "os.rename",
        "os.link",
        "os.symlink",
    }
    | {
        "os.chmod",
        "os.chown",
        "os.truncate",
        "os.utime",
        "os.listxattr",
        "os.getxattr",
        "os.setxattr",
        "shutil.rmtree",
    }
)
_seen: list[tuple[str, str]] = []
_watched: list[str] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _watched and event in EVENTS:
        for each in arguments:
            if isinstance(each, str | bytes | os.PathLike):
                path = os.fsdecode(os.path.abspath(each))  # noqa: PTH100 - the very name, not where a link leads
                if path.startswith(_watched[0]):
                    _seen.append((event, path))


async def test_the_agent_touches_nothing_that_a_payload_named(
    workplace: Workplace, store: SandboxStore
) -> None:
    """A new operation is seen by itself: the interpreter tells of each (audit events)."""
    sys.addaudithook(_hook)
    ref = await upload(store, {"in/data": b"1"})
    script = "mkdir -p d/e; echo 1 > d/e/f; ln -s /etc l; mkfifo p; echo hi; chmod 0 d/e"
    watched = payload(
        workplace,
        "sh",
        "-c",
        script,
        input_sandbox=(ref,),
        output_sandbox=("**",),
        stdout="named/log",
    )
    _watched.append(str(workplace.root))
    try:
        outcome = await watched.run()
        await watched.clean()
    finally:
        _watched.clear()
    assert outcome.reason.code is Code.DONE
    own = {watched._place.work, watched._place.scratch}
    below = {each for each in _seen if own & set(Path(each[1]).parents)}
    assert below == set()
    on = {event for event, path in _seen if Path(path) in own}
    assert on <= {"os.mkdir", "os.rmdir", "os.chown"}, "the directories themselves are made and removed"
    assert _seen, "the agent's own files are there"
    _seen.clear()
