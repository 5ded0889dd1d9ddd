"""Batch scripts of Slurm: each option with the value that its author meant, or a refusal."""

from typing import Any

import pytest

from tests.unit.jobdesc.languages.reading import fates, fields
from wms.jobdesc.languages import sbatch
from wms.jobdesc.languages.sbatch_elements import CARRIED_OUT, IMPOSSIBLE, OMITTED
from wms.jobdesc.problem import InvalidDescription

BODY = "echo $SLURM_JOB_ID\n"


def script(*options: str, body: str = BODY, first: str = "#!/bin/bash") -> str:
    return "\n".join([first, *(f"#SBATCH {each}" for each in options), body])


def job(*options: str, body: str = BODY) -> dict[str, Any]:
    (description,) = sbatch.read(script(*options, body=body).encode()).jobs()
    return fields(description)


def told(*options: str, body: str = BODY) -> dict[str, str]:
    return {name: fate for name, (fate, _) in fates(sbatch.read, script(*options, body=body)).items()}


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("-J fit", "name", "fit"),
        ("-n 4 -c 2", "processors", 8),
        ("--ntasks-per-node=8 -N1", "processors", 8),
        ("-G 2 --cpus-per-gpu=6", "processors", 12),
        ("--nodes=1-2 -n2", "processors", 2),
        ("-t 90", "wall_time", 5_400),
        ("--time=1-12", "wall_time", 129_600),
        ("--mem=4G", "memory_mb", 4_096),
        ("--mem-per-cpu=500 -n 4 -c 2", "memory_mb", 4_000),
        ("--tmp=2G", "disk_mb", 2_048),
        ("--signal=B:TERM@120", "grace_time", 120),
        ("--signal=15", "grace_time", 60),
        ("--gres=gpu:2", "gpus", 2),
        ("--gpus-per-task=2 -n 3", "gpus", 6),
        ("-d afterok:7:9,afterany:8", "after", [7, 9]),
        ("-d afterok:7:9,afterany:8", "after_any", [8]),
        ("-o out.log", "stdout", "out.log"),
        ("-J fit -e %x.err", "stderr", "fit.err"),
        ("--exclusive", "whole_node", True),
        ("--no-requeue", "max_attempts", 1),
    ],
)
def test_an_option_gives_the_job_what_it_says(option: str, field: str, value: object) -> None:
    assert job(option)[field] == value


@pytest.mark.parametrize(
    "option",
    [
        "-N 2", "--ntasks=16 --ntasks-per-node=8", "--mem=0", "--gres=gpu:v100:2", "--gres=nvme:100", "-C haswell", "-w node7",
        "--licenses=matlab", "-D /home/me", "--export=HOME_DIR", "-d singleton", "-d afternotok:7", "--array=1-9%1", "--array=9-1",
        "--signal=B:USR1@60", "--begin=16:00", "-p gpu", "-p bigmem", "--wrap=ls", "--exclusive=user", "-t soon", "-n 0", "--mem=lots",
        "--bogus", "-n 4 cores", "-J 'open", "-J",
    ],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_refused(option: str) -> None:
    with pytest.raises(InvalidDescription):
        job(option)


@pytest.mark.parametrize(
    "option", ["-A acct", "-p compute", "-q normal", "--mail-type=END", "--array=1-9%3", "--export=ALL"]
)
def test_what_cannot_change_the_job_is_left_out_and_named(option: str) -> None:
    job(option)
    assert "omitted" in told(option).values()


def test_every_option_of_the_manual_has_a_fate() -> None:
    assert CARRIED_OUT.keys() == sbatch.HANDLERS.keys()
    assert not CARRIED_OUT.keys() & (OMITTED.keys() | IMPOSSIBLE.keys())
    assert not OMITTED.keys() & IMPOSSIBLE.keys()


def test_where_an_output_would_lie_elsewhere_it_is_the_jobs_own() -> None:
    assert "stdout" not in job("-o /home/me/%x-%j.out")
    assert told("-o slurm-%j.out")["--output"] == "translated"


def test_of_an_option_that_is_given_twice_the_last_counts() -> None:
    assert job("-t 10", "-t 20")["wall_time"] == 1_200
