"""Dask on workers that are jobs of a whole system: Dask's first examples, scaling, lost workers, and the end."""

import operator
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.bag
import pytest
import pytest_asyncio
from distributed import Client as DaskClient

from tests.conftest import _fresh_database as fresh_database
from wms.client import JobDescription, Rejected, select
from wms.client import sync as blocking
from wms.dask import WmsCluster
from wms.embedded.system import System

SECONDS = 90
"""How long a condition may take on a machine with much else to do."""

pytestmark = pytest.mark.timeout(300)

HERE = JobDescription(executable=sys.executable)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def root(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[Path]:
    async for database in fresh_database(postgres_server, template):
        own = System(tmp_path_factory.mktemp("dask"), postgres=database, log_level="warning")
        async with own as system:
            yield system.layout.root


@pytest.fixture
def cluster(root: Path) -> Iterator[WmsCluster]:
    with WmsCluster(settings=root, description=HERE, memory="500 MiB", host="127.0.0.1") as cluster:
        yield cluster


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < ends, "the condition does not hold"
        time.sleep(0.05)


def workers(client: DaskClient) -> dict[str, Any]:
    """Return the workers that the scheduler knows, by their addresses."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def live(root: Path) -> int:
    """Return how many jobs have not ended."""
    with blocking.Client(root) as client:
        counts = client.counts(select(owner=client.credential().owner, state="live"))
    return sum(counts.values())


@pytest.mark.slow
def test_the_first_examples_of_dask_run_in_jobs(root: Path, cluster: WmsCluster) -> None:
    cluster.scale(2)
    with DaskClient(cluster) as client:
        client.wait_for_workers(2, timeout=SECONDS)
        assert client.gather(client.map(operator.neg, range(10))) == [-n for n in range(10)]
        total = client.submit(sum, client.map(operator.mul, range(10), range(10)))
        assert total.result(timeout=SECONDS) == 285
        halves = [dask.delayed(operator.floordiv)(n, 2) for n in range(6)]
        assert dask.delayed(sum)(halves).compute() == 6
        words = dask.bag.from_sequence(["to", "be", "or", "not", "to", "be"], npartitions=2)
        assert dict(words.frequencies().compute()) == {"to": 2, "be": 2, "or": 1, "not": 1}
        with pytest.raises(ZeroDivisionError):
            client.submit(operator.truediv, 1, 0).result(timeout=SECONDS)
        assert cluster.scheduler_address.startswith("tls://")
        pids = client.run(os.getpid)
        assert os.getpid() not in pids.values()
        cluster.scale(1)
        until(lambda: len(workers(client)) == 1)
        assert client.submit(sum, [1, 2]).result(timeout=SECONDS) == 3
    cluster.close()
    until(lambda: live(root) == 0)
    with blocking.Client(root) as wms:
        ours = select(owner=wms.credential().owner, name="dask-*")
        assert set(wms.wait(ours, timeout=SECONDS)) <= {"Done", "Killed"}


@pytest.mark.slow
def test_workers_come_and_go_with_the_tasks(root: Path, cluster: WmsCluster) -> None:
    cluster.adapt(minimum=0, maximum=2, interval="200ms", wait_count=2)
    with DaskClient(cluster) as client:
        assert client.submit(operator.add, 1, 2).result(timeout=SECONDS) == 3
        (pid,) = client.run(os.getpid).values()
        # Its worker dies with its watcher's job while a task is under way: another job takes the task.
        task = client.submit(time.sleep, 3)
        until(lambda: any(client.processing().values()))
        with blocking.Client(root) as wms:
            wms.kill(select(owner=wms.credential().owner, name="dask-*", state="live"))
        assert task.result(timeout=SECONDS) is None
        assert pid not in client.run(os.getpid).values()
        del task  # a worker that has a result which somebody wants stays
        until(lambda: not workers(client) and live(root) == 0)


@pytest.mark.slow
def test_workers_that_cannot_start_are_told_and_not_repeated(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = JobDescription(executable="false", max_attempts=1)
    with WmsCluster(settings=root, description=broken, host="127.0.0.1") as cluster:
        cluster.scale(1)
        until(lambda: not cluster.workers and not cluster.worker_spec and cluster.losses > 0)
    assert "worker dask-0 has ended: job" in caplog.text
    assert "is Failed" in caplog.text


def test_without_a_system_the_remedy_is_told(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="wms up"):
        WmsCluster(settings=tmp_path)


@pytest.mark.slow
def test_the_end_of_the_program_ends_the_workers(root: Path) -> None:
    program = (
        "import sys; from wms.client import JobDescription; from wms.dask import WmsCluster\n"
        "cluster = WmsCluster(description=JobDescription(executable=sys.executable), host='127.0.0.1')\n"
        "cluster.scale(1); client = cluster.get_client(); print(client.submit(sum, [1, 2]).result())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WMS_DATA": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ended.stdout == "3\n", ended.stderr
    until(lambda: live(root) == 0)
