"""The Python client against a whole system: watching, maps, outputs, and functions that run as jobs."""

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.conftest import _fresh_database as fresh_database
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
        with pytest.raises(Unavailable, match="1 jobs have not ended within 1 s"):
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


def test_functions_run_as_jobs(root: Path, tmp_path: Path) -> None:
    module = tmp_path / "guide_module.py"
    module.write_text("def twice(x):\n    return 2 * x\n")
    sys.path.insert(0, str(tmp_path))
    import guide_module  # type: ignore[import-not-found]

    here = JobDescription(executable=sys.executable, max_attempts=1)
    with Executor(root, description=here, files=[module]) as executor:
        assert list(executor.map(guide_module.twice, range(5), timeout=90)) == [0, 2, 4, 6, 8]
        error = executor.submit(divmod, 1, 0).exception(timeout=60)
        assert isinstance(error, ZeroDivisionError)
        assert "at the site" in error.__notes__[0]
        exited = executor.submit(sys.exit, 3).exception(timeout=60)
        assert isinstance(exited, SystemExit)
        with pytest.raises(Rejected, match="CANNOT_BE_SENT"):
            executor.submit(lambda: 1)
        assert executor.submit(time.sleep, 60).cancel()
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(len, "")
