"""The program of a batch script's job, and the variables that Slurm would set."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.jobdesc.languages.test_sbatch import job, script
from wms.jobdesc.array import expand
from wms.jobdesc.languages import sbatch
from wms.jobdesc.languages.sbatch_program import SCRIPT
from wms.jobdesc.problem import InvalidDescription


def test_the_script_goes_along_and_is_run_by_its_interpreter() -> None:
    text = script("-J fit", first="#!/usr/bin/env python3 -u")
    found = sbatch.read(text.encode())
    assert not found.local_files
    (description,) = found.jobs()
    assert description.arguments[2:] == ("sh", text, "/usr/bin/env", "python3 -u", SCRIPT)
    assert description.output_sandbox == ("*",)


def test_the_shell_writes_the_script_as_it_is(tmp_path: Path) -> None:
    body = 'printf "%s\\n" "$0" "$SLURM_ARRAY_TASK_ID" ${n} "{n} {task}" $SLURM_RESTART_COUNT; echo e >&2'
    (description,) = sbatch.read(script("-a 7-8", body=f"n=five\n{body}\n").encode()).jobs()
    own = expand(description, 1)
    ours = {"WMS_JOB_ID": "18", "WMS_EPOCH": "1", "TMPDIR": "/tmp", "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [own.executable, *own.arguments],
        cwd=tmp_path,
        env={**ours, **own.environment},
        capture_output=True,
        check=True,
    )
    assert ran.stdout.decode().split("\n") == [SCRIPT, "8", "five", "{n} {task}", "0", "e", ""]
    assert not ran.stderr


def test_errors_go_to_the_output_unless_they_have_a_file() -> None:
    assert "2>&1" in job()["arguments"][1]
    assert "2>&1" in job("-o a.log -e a.log")["arguments"][1]
    assert "2>&1" not in job("-e b.log")["arguments"][1]


def test_the_variables_are_those_that_slurm_sets() -> None:
    said = job("-n 4 -c 2 -J fit --mem=1G --export=FOO='a b'")["environment"]
    assert said["FOO"] == "a b"
    assert (said["SLURM_NTASKS"], said["SLURM_CPUS_PER_TASK"], said["SLURM_CPUS_ON_NODE"]) == ("4", "2", "8")
    assert (said["SLURM_JOB_NAME"], said["SLURM_MEM_PER_NODE"]) == ("fit", "1024")
    assert "SLURM_CPUS_PER_TASK" not in job()["environment"]


def test_a_task_of_an_array_has_its_own_id_and_file() -> None:
    text = script("-a 3,7-9:2 -o out_%a.txt", body="echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_JOB_ID")
    (description,) = sbatch.read(text.encode()).jobs()
    tasks = [expand(description, n) for n in range(3)]
    assert [each.environment["SLURM_ARRAY_TASK_ID"] for each in tasks] == ["3", "7", "9"]
    assert [each.stdout for each in tasks] == ["out_3.txt", "out_7.txt", "out_9.txt"]
    assert "WMS_JOB_ID - 2" in tasks[2].arguments[1]


def test_braces_of_the_author_stay_as_they_are_in_an_array() -> None:
    (description,) = sbatch.read(script("-a 1-2 -J '{n} {task}' --export=A={n}").encode()).jobs()
    assert expand(description, 1).name == "{n} {task}"
    assert expand(description, 1).environment["A"] == "{n}"


@pytest.mark.parametrize("name", ["SLURM_ARRAY_TASK_ID", "SLURM_SUBMIT_HOST", "SLURM_STEP_ID"])
def test_a_variable_that_is_not_given_refuses_the_script_that_uses_it(name: str) -> None:
    with pytest.raises(InvalidDescription, match=name):
        job(body=f"echo ${{{name}}}\n")
    job(body=f"# {name} is not used\nexport {name}=1; echo ${name}\n")
