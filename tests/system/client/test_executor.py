"""The Python client against a whole system: watching, maps, outputs, and functions that run as jobs."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from concurrent import futures
from pathlib import Path

import pytest
import pytest_asyncio

from tests.conftest import _fresh_database as fresh_database
from tests.waiting import eventually
from wms.client import Client, JobDescription, Rejected, State, Unavailable, select
from wms.client import sync as blocking
from wms.client.executor import Executor
from wms.embedded.system import System


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def root(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[Path]:
    async for database in fresh_database(postgres_server, template):
        own = System(tmp_path_factory.mktemp("python"), postgres=database, log_level="warning")
        async with own as system:
            yield system.layout.root


async def test_jobs_are_watched_until_they_have_ended(root: Path) -> None:
    async with Client.connect(root) as client:
        sleeper = await client.submit(JobDescription(executable="sleep", arguments=("60",)))
        with pytest.raises(Unavailable, match="1 job has not ended within 1 s"):
            async for _ in client.watch(sleeper, timeout=1):
                pass
        letters = JobDescription(executable="true", name="{x}")
        names = [job.name async for job in client.map(letters, {"x": ["c", "a", "b"]}, timeout=60)]
        assert names == ["c", "a", "b"]
        await client.cancel(sleeper)
        ended = [job.job_id async for job in client.as_completed(sleeper, timeout=60)]
        assert ended == list(sleeper.job_ids())


async def test_states_are_told_in_their_order(root: Path) -> None:
    async with Client.connect(root) as client:
        taken = await client.submit(
            JobDescription(executable="true", parameters={"x": ("1", "2")}), hold=True
        )
        told = []
        async for job in client.watch(taken, timeout=60):
            told.append((job.job_id, job.state))
            if len(told) == 2:
                await client.release(taken.selector())
        assert told[:2] == [(job_id, State.HELD) for job_id in taken.job_ids()]
        assert {job_id for job_id, state in told if state == State.DONE} == set(taken.job_ids())


def test_outputs_come_in_bulk_and_jobs_are_cancelled(root: Path, tmp_path: Path) -> None:
    with blocking.Client(root) as client:
        keep = JobDescription(executable="sh", arguments=("-c", "echo {x} > x"), output_sandbox=("x",))
        ended = list(client.map(keep, {"x": ["one", "two"]}, timeout=60))
        without = client.submit(JobDescription(executable="sleep", arguments=("60",)))
        assert client.cancel(without).changed == 1
        assert [job.job_id for job in client.as_completed(without, timeout=60)] == list(without.job_ids())
        jobs = [*(job.job_id for job in ended), *without.job_ids()]
        found = client.outputs(select(jobs), tmp_path)
        assert [(tmp_path / str(job) / "x").read_text() for job in jobs[:2]] == ["one\n", "two\n"]
        assert isinstance(found[jobs[2]], Rejected)
        for job in client.watch(select(jobs)):  # left in the middle, it ends its reader
            assert job.job_id in jobs
            break


@pytest.fixture(scope="module")
def here() -> JobDescription:
    """Return a job of this Python, which is started once."""
    return JobDescription(executable=sys.executable, max_attempts=1)


def test_functions_run_as_jobs(
    root: Path, here: JobDescription, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    module = tmp_path / "guide_module.py"
    module.write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import guide_module  # type: ignore[import-not-found]

    with Executor(root, description=here, files=[module]) as executor:
        assert list(executor.map(guide_module.twice, range(5), timeout=90)) == [0, 2, 4, 6, 8]
        error = executor.submit(divmod, 1, 0).exception(timeout=60)
        assert isinstance(error, ZeroDivisionError)
        assert "at the site" in error.__notes__[0]
        exited = executor.submit(sys.exit, 3).exception(timeout=60)
        assert isinstance(exited, SystemExit)
        with pytest.raises(Rejected, match="CANNOT_BE_SENT"):
            executor.submit(lambda: 1)
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(len, "")
    executor.shutdown()  # a second time, which changes nothing


def test_a_chunk_is_one_job(root: Path, here: JobDescription) -> None:
    with Executor(root, description=here, initializer=sys.setrecursionlimit, initargs=(777,)) as executor:
        with pytest.raises(ValueError, match="chunksize and buffersize must be 1 or more"):
            executor.map(pow, [1], chunksize=0)
        assert list(executor.map(pow, range(7), [2] * 9, chunksize=3, timeout=90)) == [0, 1, 4, 9, 16, 25, 36]
        assert len(set(executor.map(eval, ["__import__('os').getpid()"] * 4, chunksize=2, timeout=90))) == 2
        assert executor.submit(sys.getrecursionlimit).result(timeout=60) == 777
        results = executor.map(divmod, [3, 1, 5], [2, 0, 2], chunksize=1, timeout=90)
        assert next(results) == (1, 1)
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_what_is_cancelled_is_told_and_killed(root: Path, here: JobDescription) -> None:
    with Executor(root, description=here) as executor:
        sleepers = [executor.submit(time.sleep, 600) for _ in range(3)]
        with pytest.raises(TimeoutError):
            list(executor.map(time.sleep, [600], timeout=0.5))
        assert sleepers[0].cancel()
        assert list(futures.as_completed(sleepers[:1], timeout=60)) == sleepers[:1]
        done, _ = futures.wait(sleepers, return_when=futures.FIRST_COMPLETED, timeout=60)
        assert done == {sleepers[0]}
        executor.shutdown(wait=False, cancel_futures=True)
    assert all(each.cancelled() for each in sleepers)
    with blocking.Client(root) as client:
        assert client.wait(select(owner=client.credential().owner, state="live"), timeout=60) == {}


async def test_an_error_leaves_nothing_running(root: Path, here: JobDescription) -> None:
    with contextlib.suppress(ZeroDivisionError), Executor(root, description=here) as executor:
        sleeper = executor.submit(time.sleep, 600)
        await eventually(sleeper.running, within=60)
        raise ZeroDivisionError
    assert sleeper.cancelled()
    program = (
        "import sys, time; from wms.client import JobDescription; from wms.client.executor import Executor\n"
        "executor = Executor(description=JobDescription(executable=sys.executable, name='left'))\n"
        "executor.submit(time.sleep, 600); time.sleep(1); raise KeyboardInterrupt\n"
    )
    environment = {**os.environ, "WMS_DATA": str(root)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=100)
    with blocking.Client(root) as client:
        assert sleeper.job_id is not None
        assert client.show(sleeper.job_id).job.name == "sleep"
        ended = client.wait(select(owner=client.credential().owner, name="left"), timeout=60)
        assert (ended, client.wait(select(sleeper.job_id), timeout=60)) == ({"Killed": 1}, {"Killed": 1})


def test_an_executor_without_a_system_breaks_with_the_remedy(tmp_path: Path) -> None:
    with Executor(tmp_path / "nothing") as executor:
        try:
            fault = executor.submit(len, "").exception(timeout=60)
        except futures.BrokenExecutor as broken:  # it was told before the call
            fault = broken
    assert "wms up" in str(fault)


def test_a_program_that_ends_waits_for_its_calls(root: Path) -> None:
    program = (
        "import sys; from wms.client import JobDescription; from wms.client.executor import Executor\n"
        "executor = Executor(description=JobDescription(executable=sys.executable))\n"
        "executor.submit(pow, 6, 2).add_done_callback(lambda future: print(future.result()))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WMS_DATA": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (ended.stdout, ended.returncode) == ("36\n", 0), ended.stderr
