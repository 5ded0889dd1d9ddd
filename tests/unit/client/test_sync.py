"""The blocking client as its users see it: types, names and help."""

import inspect
import subprocess
import sys
from pathlib import Path

import wms.client
from wms.client import sync

SCRIPT = """
from typing import assert_type
from wms.client import JobDescription as Described
from wms.client.executor import Executor
from wms.client.sync import Client, JobDescription, Submission, select


def fit(x: float, *, steps: int = 3) -> float:
    return x * steps


with Client() as client:
    taken = client.submit(JobDescription(executable="echo", arguments=("{x}",), parameters={"x": ("1", "2")}))
    assert_type(taken, Submission)
    assert_type(client.wait(taken.selector()), dict[str, int])
    for job in client.jobs(select(group="g")):
        assert_type(job.job_id, int)
with Executor(description=Described(executable="python3")) as executor:
    future = executor.submit(fit, 1.0, steps=4)
    assert_type(future.result(), float)
    assert_type(future.job_id, int | None)
    print(sum(executor.map(fit, [1.0, 2.0], buffersize=3)))
"""


def test_a_strict_script_of_a_user_passes_mypy(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "script.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert checked.returncode == 0, checked.stdout


def test_its_signatures_are_of_calls_that_block() -> None:
    for name, method in vars(sync.Client).items():
        if not name.startswith("_") and callable(method):
            assert not inspect.iscoroutinefunction(method)
            assert not str(inspect.signature(method).return_annotation).startswith("collections.abc.Async"), (
                name
            )


def test_the_public_names_alone_are_listed() -> None:
    assert dir(wms.client) == sorted(wms.client.__all__)
    assert dir(sync) == sorted(sync.__all__)
