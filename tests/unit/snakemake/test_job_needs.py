"""Snakemake's resources in the terms of a job description."""

import pytest

from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.snakemake.job_needs import with_needs

BASE = JobDescription(executable="sh", memory_mb=100, wall_time=50)


def test_resources_become_needs() -> None:
    resources = {"mem_mb": 2_000, "runtime": 30, "disk_mb": 1_000, "tmpdir": "/tmp"}
    job = with_needs(BASE, 4, resources, own_directory=True)
    assert (job.processors, job.memory_mb, job.disk_mb, job.wall_time) == (4, 1_908, 954, 1_800)
    assert (job.max_memory_mb, job.cpu_time) == (1_908 + 512, 86_400)
    assert with_needs(BASE, 64, resources, own_directory=False).cpu_time == 64 * 1_800


def test_mebibytes_are_taken_as_they_are() -> None:
    assert with_needs(BASE, 1, {"mem_mib": 2_000, "mem_mb": 2_098}, own_directory=True).memory_mb == 2_000


def test_what_is_not_said_stays() -> None:
    job = with_needs(BASE, 0, {"mem_mb": "<TBD>"}, own_directory=False)
    assert (job.processors, job.memory_mb, job.disk_mb, job.wall_time) == (1, 100, None, 50)
    assert with_needs(BASE, 1, {"disk_mb": 7}, own_directory=False).disk_mb is None


def test_fields_of_a_description_are_resources_too() -> None:
    job = with_needs(
        BASE, 1, {"wms_sites": "CERN, RAL", "wms_requirements": "other.X > 1"}, own_directory=False
    )
    assert (job.sites, job.requirements) == (("CERN", "RAL"), "other.X > 1")
    with pytest.raises(Rejected, match=r"wms knows no resource wms_site\b(.|\n)*wms_sites"):
        with_needs(BASE, 1, {"wms_site": "CERN"}, own_directory=False)


def test_gpus_become_gpus_of_the_job() -> None:
    job = with_needs(BASE, 1, {"gpu": 1, "nvidia_gpu": 2, "nodes": 1}, own_directory=False)
    assert (job.gpus, job.requirements) == (2, "")
    both = with_needs(BASE, 1, {"gpu": 1, "wms_requirements": "a || b"}, own_directory=False)
    assert (both.gpus, both.requirements) == (1, "a || b")
    assert with_needs(BASE, 1, {"gpu": 0}, own_directory=False).gpus == 0


def test_memory_of_each_thread_is_multiplied() -> None:
    job = with_needs(BASE, 4, {"mem_mb_per_cpu": 4_000, "mem_mb": 1_000}, own_directory=False)
    assert (job.memory_mb, job.max_memory_mb) == (4 * 3_815, 4 * 3_815 + 512)


@pytest.mark.parametrize("said", [{"nodes": 2}, {"mpi": "mpiexec"}, {"gpu": "a100:1"}, {"gpu_model": "a100"}])
def test_what_no_job_can_be_given_is_refused(said: dict[str, object]) -> None:
    (name,) = said
    with pytest.raises(Rejected, match=f"no job can be given {name}="):
        with_needs(BASE, 1, said, own_directory=False)
