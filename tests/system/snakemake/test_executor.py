"""Snakemake's workflows at the sites of a whole system: its own examples, failures, Ctrl-C, a Snakemake that dies, and resources."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.conftest import _fresh_database as fresh_database
from tests.system.snakemake_environment import snakemake_bin
from wms.client import select
from wms.client.sync import Client
from wms.embedded.layout import ISOLATION_VARIABLE
from wms.embedded.system import System

SECONDS = 150
"""How long a workflow or a condition may take on a machine with much else to do."""
NOTHING = ("--shared-fs-usage", "software-deployment")
"""Sites that share nothing with the workflow but the Python."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def snakemake() -> Path:
    """Return the program."""
    return snakemake_bin() / "snakemake"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def root(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: str, template: str
) -> AsyncIterator[Path]:
    """Yield the directory of a system whose payloads see the directories of the tests, as those of a site with shared ones do."""
    before = os.environ.get(ISOLATION_VARIABLE)
    os.environ[ISOLATION_VARIABLE] = "none"
    try:
        async for database in fresh_database(postgres_server, template):
            place = tmp_path_factory.mktemp("snakemake")
            async with System(place, postgres=database, log_level="warning") as system:
                yield system.layout.root
    finally:
        os.environ.pop(ISOLATION_VARIABLE)
        if before is not None:
            os.environ[ISOLATION_VARIABLE] = before


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with Client(root) as client:
        yield client


class Workflow:
    """A directory with a workflow, and Snakemake to run it there."""

    def __init__(self, snakemake: Path, root: Path, work: Path) -> None:
        self.work = work
        self.group = work.name
        self._argv = [str(snakemake), "--executor", "wms", "--jobs", "10", "--wms-group", self.group]
        self._environment = {**os.environ, "WMS_DATA": str(root)}

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # Whoever runs the tests in the background has them ignore Ctrl-C, which is inherited.
            ["env", "--default-signal=INT", *self._argv, *options],
            cwd=self.work,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str) -> tuple[int, str]:
        """Return the exit code, and what Snakemake printed."""
        return self.end(self.start(*options))

    def log(self) -> str:
        """Return what all Snakemakes have logged here."""
        return "".join(path.read_text() for path in self.work.glob(".snakemake/log/*.log"))

    def end(self, running: subprocess.Popen[str]) -> tuple[int, str]:
        try:
            printed, _ = running.communicate(timeout=SECONDS)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.communicate()
        return running.returncode, printed


@pytest.fixture
def workflow(snakemake: Path, root: Path, tmp_path: Path) -> Workflow:
    return Workflow(snakemake, root, tmp_path)


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < ends, "the condition does not hold"
        time.sleep(0.05)


@pytest.mark.parametrize("files", [(), NOTHING], ids=["shared", "sandbox"])
@pytest.mark.parametrize("example", ["simple", "groups"])
def test_its_own_examples_run(
    example: str, files: tuple[str, ...], snakemake: Path, workflow: Workflow
) -> None:
    (found,) = snakemake.parents[1].glob(
        f"lib/python*/site-packages/snakemake/common/tests/testcases/{example}"
    )
    shutil.copytree(found, workflow.work, dirs_exist_ok=True)
    code, printed = workflow.run(*files)
    assert code == 0, printed
    assert (workflow.work / "test3.out").exists()
    assert not (workflow.work / "stdout.txt").exists()
    assert workflow.run(*files)[1].count("Nothing to be done") == 1


RESOURCES = """
rule all:
    input: "good.txt", "sub/tree"
rule good:
    output: "good.txt"
    threads: 2
    resources: mem_mb=2000, runtime=30, wms_tags="", wms_requirements="other.GlueCEPolicyMaxCPUTime > 1"
    shell: "echo {threads} > {output}"
rule tree:
    output: directory("sub/tree")
    shell: "mkdir -p {output}/deep; echo x > {output}/deep/x"
"""


def test_resources_and_directories_go_there_and_back(workflow: Workflow, client: Client) -> None:
    (workflow.work / "Snakefile").write_text(RESOURCES)
    code, printed = workflow.run(*NOTHING, "--set-resources", "tree:disk_mb=100")
    assert code == 0, printed
    assert (workflow.work / "good.txt").read_text() == "2\n"
    assert (workflow.work / "sub" / "tree" / "deep" / "x").read_text() == "x\n"
    jobs = {job.name: job for job in client.descriptions(select(group=workflow.group))}
    good, tree = (
        next(job for name, job in jobs.items() if name.startswith(rule)) for rule in ("good", "tree")
    )
    assert (good.processors, good.memory_mb, good.wall_time) == (2, 1_908, 1_800)
    assert good.requirements == "other.GlueCEPolicyMaxCPUTime > 1"
    assert tree.disk_mb == 96


FAILING = """
rule all:
    input: "bad.txt", "good.txt", "typo.txt"
rule good:
    output: "good.txt"
    shell: "touch {output}"
rule bad:
    output: "bad.txt"
    shell: "touch {output}; exit 3"
rule typo:
    output: "typo.txt"
    resources: wms_site="CERN"
    shell: "touch {output}"
"""


def test_a_failure_names_the_job_and_spares_the_others(workflow: Workflow, client: Client) -> None:
    (workflow.work / "Snakefile").write_text(FAILING)
    code, printed = workflow.run("--keep-going")
    assert code != 0
    assert sorted(path.name for path in workflow.work.glob("*.txt")) == ["good.txt"]
    (failed,) = client.jobs(select(group=workflow.group, state="Failed"))
    assert f"job {failed.job_id} of wms is Failed: EXIT_CODE; `wms logs {failed.job_id}`" in printed
    assert "wms knows no resource wms_site" in printed
    assert "one of wms_sites" in printed


GROWING = """
rule all:
    input: "grown.txt"
rule grow:
    output: "grown.txt"
    retries: 2
    resources: mem_mb=lambda wildcards, attempt: 400 * attempt
    shell: "[ {resources.mem_mb} -ge 800 ] && touch {output}"
"""


def test_a_rule_that_is_tried_again_is_a_new_job_with_its_new_memory(
    workflow: Workflow, client: Client
) -> None:
    (workflow.work / "Snakefile").write_text(GROWING)
    code, printed = workflow.run()
    assert code == 0, printed
    ours = select(group=workflow.group)
    assert client.counts(ours) == {"Failed": 1, "Done": 1}
    assert {job.memory_mb for job in client.descriptions(ours)} == {382, 763}


GROUPED = """
rule all:
    input: "last.txt", "other.txt"
rule first:
    output: temp("first.txt"), temp("shared.txt")
    group: "chain"
    shell: "echo 1 > {output[0]}; echo 2 > {output[1]}"
rule last:
    input: "first.txt"
    output: "last.txt"
    group: "chain"
    shell: "cp {input} {output}"
rule other:
    input: "shared.txt"
    output: "other.txt"
    shell: "cp {input} {output}"
"""


@pytest.mark.parametrize("files", [(), NOTHING], ids=["shared", "sandbox"])
def test_temporary_files_of_a_group_are_not_missed(
    files: tuple[str, ...], workflow: Workflow, client: Client
) -> None:
    (workflow.work / "Snakefile").write_text(GROUPED)
    code, printed = workflow.run(*files)
    assert code == 0, printed
    assert (workflow.work / "other.txt").read_text() == "2\n"
    done = list(client.jobs(select(group=workflow.group)))
    assert [(job.state, job.reason) for job in done] == [("Done", "DONE")] * 2


SLOW = """
rule all:
    input: "a.txt", "b.txt"
rule slow:
    output: "{name}.txt"
    shell: "touch started.{wildcards.name}; while [ ! -e go ]; do sleep 0.1; done; touch {output}"
"""


def started(workflow: Workflow) -> bool:
    return len(list(workflow.work.glob("started.*"))) == 2


def test_ctrl_c_kills_the_jobs(workflow: Workflow, client: Client) -> None:
    (workflow.work / "Snakefile").write_text(SLOW)
    running = workflow.start()
    until(lambda: started(workflow))
    running.send_signal(signal.SIGINT)
    code, printed = workflow.end(running)
    assert code != 0, printed
    assert client.wait(select(group=workflow.group), timeout=SECONDS) == {"Killed": 2}


def test_a_second_snakemake_goes_on_with_the_jobs_of_one_that_died(
    workflow: Workflow, client: Client
) -> None:
    (workflow.work / "Snakefile").write_text(SLOW)
    running = workflow.start()
    until(lambda: started(workflow))
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    again = workflow.start("--nolock")
    try:
        until(lambda: workflow.log().count("goes on as job") == 2)
    finally:
        (workflow.work / "go").touch()
        code, printed = workflow.end(again)
    assert code == 0, printed
    assert client.counts(select(group=workflow.group)) == {"Done": 2}


def test_without_a_system_the_remedy_is_told(workflow: Workflow, tmp_path: Path) -> None:
    (workflow.work / "Snakefile").write_text(SLOW)
    code, printed = workflow.run("--wms-data", str(tmp_path / "nothing"))
    assert code != 0
    assert "wms up" in printed
    assert "Traceback" not in printed
