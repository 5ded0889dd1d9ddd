"""The job of a Dask worker: its command, its needs, and the files of its certificates."""

from itertools import pairwise

from distributed.security import Security
from msgspec.structs import replace

from wms.dask.worker_job import WorkerNeeds, certificates, described, file_name
from wms.jobdesc.description import MIB, JobDescription, SandboxRef

NEEDS = WorkerNeeds(
    cores=4,
    memory=1_500 * MIB + 1,
    walltime=1_800,
    death_timeout=60,
    extra_args=("--resources", "GPU=1"),
    description=JobDescription(executable="python3", arguments=("-O",), sites=("CERN",)),
)


def test_a_worker_is_told_what_its_job_asks_for() -> None:
    job = described(NEEDS, "tls://10.0.0.1:8786", "dask-3")
    said = dict(zip(job.arguments, job.arguments[1:], strict=False))
    assert job.arguments[:4] == ("-O", "-m", "distributed.cli.dask_worker", "tls://10.0.0.1:8786")
    assert (said["--name"], said["--nthreads"], said["--memory-limit"]) == ("dask-3", "4", str(NEEDS.memory))
    assert (said["--lifetime"], said["--lifetime-stagger"]) == ("1620s", "120s")
    assert job.arguments[-2:] == ("--resources", "GPU=1")
    assert (job.processors, job.memory_mb, job.max_memory_mb, job.wall_time) == (4, 1_501, 2_013, 1_800)
    assert (job.name, job.sites, job.input_sandbox) == ("dask-3", ("CERN",), ())


def test_workers_end_staggered_before_their_walltime() -> None:
    for walltime, lifetime, stagger in [(3_600, "3300s", "240s"), (60, "50s", "4s"), (1, "1s", "0s")]:
        arguments = described(replace(NEEDS, walltime=walltime), "tcp://10.0.0.1:8786", "dask-3").arguments
        said = dict(pairwise(arguments))
        assert (said["--lifetime"], said["--lifetime-stagger"]) == (lifetime, stagger)


def test_without_a_walltime_the_site_decides() -> None:
    job = described(replace(NEEDS, walltime=None), "tcp://10.0.0.1:8786", "dask-3")
    assert "--lifetime" not in job.arguments
    assert job.wall_time is None


def test_certificates_go_along_as_files() -> None:
    said = certificates(Security.temporary())
    assert {value.splitlines()[0].count("BEGIN") for value in said.values()} == {1}
    archive = SandboxRef(sha256="0" * 64, size=1)
    job = described(NEEDS, "tls://10.0.0.1:8786", "dask-3", files=archive, options=tuple(said))
    words = dict(zip(job.arguments, job.arguments[1:], strict=False))
    assert all(words[option] == file_name(option) for option in said)
    assert job.input_sandbox == (archive,)
    assert not any("BEGIN" in word for word in job.arguments)
    assert certificates(Security()) == {}
