"""Files beside documents of other systems go along with their jobs."""

from pathlib import Path

import msgspec
import pytest

from wms.cli.__main__ import run
from wms.cli.description_files import jobs_of_file

JDL = b'Executable = "run.sh";\nInputSandbox = {"run.sh", "cards"};\nMyProxyServer = "x";\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.jdl").write_bytes(JDL)
    (tmp_path / "cards").write_text("1")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    return tmp_path


def test_files_are_found_beside_the_document(folder: Path) -> None:
    found = jobs_of_file(str(folder / "job.jdl"), JDL, strict=False)
    assert [each.executable for each in found.descriptions] == ["./run.sh"]
    assert found.files == [{"run.sh": folder / "run.sh", "cards": folder / "cards"}]


def test_a_plan_shows_the_files_and_the_losses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["submit", "--data", str(folder), "--dry-run", "--json", str(folder / "job.jdl")]
    assert run(words) == 0
    said = capsys.readouterr()
    (description,) = msgspec.json.decode(said.out)["descriptions"]
    assert description["executable"] == "./run.sh"
    assert "MyProxyServer" in said.err


def test_a_missing_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cards").unlink()
    assert run(["submit", "--data", str(folder), "--dry-run", str(folder / "job.jdl")]) == 2
    assert "cards, which is no file" in capsys.readouterr().err
