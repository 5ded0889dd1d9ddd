"""The program of a job that is a file of this machine."""

from pathlib import Path

import pytest

from wms.client.sent_program import brings_files, program_to_send
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription, SandboxRef


def test_a_program_that_is_a_file_here_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit").write_text("#!/bin/sh\n")
    job = JobDescription(executable="./fit")
    with pytest.raises(Rejected, match="NOT_EXECUTABLE"):
        program_to_send(job)
    (tmp_path / "fit").chmod(0o755)
    assert program_to_send(job) == Path("fit")
    with pytest.raises(Rejected, match="NO_SUCH_FILE"):
        program_to_send(JobDescription(executable="./fitt"))
    brought = JobDescription(executable="./fitt", input_sandbox=(SandboxRef(sha256="0" * 64, size=1),))
    assert [program_to_send(each) for each in (brought, JobDescription(executable="/bin/true"))] == [None] * 2
    assert program_to_send(job, ["fit"]) is None


def test_who_brings_files_brings_the_program() -> None:
    assert brings_files(JobDescription(executable="./fit", input_from=(1,)))
    assert not brings_files(JobDescription(executable="./fit"))
