"""Keeping what a payload leaves: what is stored when all goes well, when it is too much, and while the store is away."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.job_agent.payload import output_upload
from services.job_agent.payload.output_upload import KeptOutputs, Wanted, keep_outputs
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.stager_link import StagerLink
from services.job_agent.payload.workdir import SCRATCH, WORK, Workdir
from services.job_agent.threads import Threads
from tests.unit.job_agent.payload.local_stager import local_stager
from wms.ids import Epoch, JobId
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.transfer import SandboxStore, download, open_store

MIB = 2**20
PRINTED = {"stdout.txt", "stderr.txt"}


@pytest.fixture
def workdir(tmp_path: Path) -> Workdir:
    return a_workdir(tmp_path)


@pytest.fixture
def stager(workdir: Workdir) -> Iterator[StagerLink]:
    with local_stager(workdir.work, workdir.scratch) as link:
        yield link


def a_workdir(tmp_path: Path) -> Workdir:
    """Return the directory of a payload that printed a line and wrote two files."""
    root = tmp_path / "run"
    root.mkdir()
    description = JobDescription(executable="true")
    made = Workdir(root, JobId(1), Epoch(1), description, SpareWorkdirs(root, (WORK, SCRATCH)))
    made.make()
    (made.work / "a.out").write_bytes(b"result")
    (made.work / "b.log").write_bytes(b"log")
    made.stdout.path.write_bytes(b"hello\n")
    return made


@pytest.fixture
def store(tmp_path: Path) -> SandboxStore:
    (tmp_path / "store").mkdir()
    return open_store(f"file://{tmp_path}/store")


THREADS = Threads(2, "outputs")


async def names_in(store: SandboxStore, kept: KeptOutputs, dest: Path) -> set[str]:
    assert kept.output is not None
    dest.mkdir()
    await download(store, kept.output.sha256, dest)
    return {str(path.relative_to(dest)) for path in dest.rglob("*") if path.is_file()}


async def test_what_patterns_choose_and_what_was_printed_is_stored(
    workdir: Workdir, stager: StagerLink, store: SandboxStore, tmp_path: Path
) -> None:
    kept = await keep_outputs(
        workdir, store, stager, Wanted(patterns=("*.out", "none*"), allowed=MIB), THREADS
    )
    assert kept.fault is None
    assert kept.selected.unmatched == ["none*"]
    assert (kept.selected.left, kept.stdout.text) == (["b.log"], "hello\n")
    assert await names_in(store, kept, tmp_path / "got") == {"a.out", *PRINTED}


async def test_of_too_much_only_what_was_printed_is_stored(
    workdir: Workdir, stager: StagerLink, store: SandboxStore, tmp_path: Path
) -> None:
    kept = await keep_outputs(workdir, store, stager, Wanted(patterns=("*.out",), allowed=5), THREADS)
    assert kept.fault is not None
    assert kept.fault.code is Code.OUTPUT_FAILED
    assert "would hold 6" in kept.fault.text
    assert await names_in(store, kept, tmp_path / "got") == PRINTED


async def test_a_pattern_that_leads_out_chooses_nothing_and_is_named(
    workdir: Workdir, stager: StagerLink, store: SandboxStore, tmp_path: Path
) -> None:
    kept = await keep_outputs(workdir, store, stager, Wanted(patterns=("../*",), allowed=MIB), THREADS)
    assert kept.fault is not None
    assert kept.fault.code is Code.OUTPUT_FAILED
    assert await names_in(store, kept, tmp_path / "got") == PRINTED


def take_away(place: Path) -> None:
    place.rename(place.with_suffix(".away"))
    place.touch()


def bring_back(place: Path) -> None:
    place.unlink()
    place.with_suffix(".away").rename(place)


async def test_a_store_that_stays_away_leaves_the_harvest_and_an_agent_fault(
    workdir: Workdir, stager: StagerLink, store: SandboxStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_upload, "UPLOAD_PAUSE_SECONDS", 0.0)
    take_away(tmp_path / "store")
    kept = await keep_outputs(workdir, store, stager, Wanted(patterns=("*.out",), allowed=MIB), THREADS)
    assert (kept.output, kept.stdout.text) == (None, "hello\n")
    assert kept.fault is not None
    assert kept.fault.code is Code.AGENT_ERROR


async def test_a_store_that_comes_back_gets_the_outputs(
    workdir: Workdir, stager: StagerLink, store: SandboxStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(tmp_path / "store")
    monkeypatch.setattr(asyncio, "sleep", _first(lambda: bring_back(tmp_path / "store")))
    kept = await keep_outputs(workdir, store, stager, Wanted(patterns=("*.out",), allowed=MIB), THREADS)
    assert kept.fault is None
    assert await names_in(store, kept, tmp_path / "got") == {"a.out", *PRINTED}


def _first(action: Callable[[], None]) -> Callable[[float], Awaitable[None]]:
    """Return a pause in which the action happens."""

    async def pause(_: float) -> None:
        action()

    return pause


async def test_of_a_payload_that_left_nothing_what_was_printed_is_stored(
    workdir: Workdir, store: SandboxStore, tmp_path: Path
) -> None:
    kept = await keep_outputs(workdir, store, None, Wanted(patterns=("*.out",), allowed=MIB), THREADS)
    assert (kept.fault, kept.selected.unmatched) == (None, ["*.out"])
    assert await names_in(store, kept, tmp_path / "got") == PRINTED
    kept = await keep_outputs(workdir, store, None, Wanted(patterns=("../*",), allowed=MIB), THREADS)
    assert kept.fault is not None
    assert kept.fault.code is Code.OUTPUT_FAILED


class StoreOfALoop:
    """A store that works in the threads of an event loop, as that behind a gateway does."""

    def __init__(self, store: SandboxStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self.max_object = store.max_object

    def keep(self, source: Path | bytes) -> SandboxRef:
        working = asyncio.to_thread(self._store.keep, source)
        return asyncio.run_coroutine_threadsafe(working, self._loop).result()

    async def fetch(self, sha256: str, to_path: Path) -> SandboxRef:
        return await self._store.fetch(sha256, to_path)


def test_more_outputs_than_the_loop_has_threads_are_stored_at_once(
    tmp_path: Path, store: SandboxStore
) -> None:
    async def store_all() -> list[KeptOutputs]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        place, at = a_workdir(tmp_path), StoreOfALoop(store)
        async with asyncio.timeout(30):
            each = Wanted(allowed=MIB)
            return await asyncio.gather(*(keep_outputs(place, at, None, each, THREADS) for _ in range(3)))

    assert [each.fault for each in asyncio.run(store_all())] == [None] * 3
