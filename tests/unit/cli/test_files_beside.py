"""Files beside documents of other systems go along with their jobs."""

import io
import tarfile
from pathlib import Path

import msgspec
import pytest

from wms.cli.__main__ import run
from wms.cli.description_files import jobs_of_file
from wms.errors import Rejected
from wms.jobdesc.problem import InvalidDescription
from wms.transfer.archive import pack

JDL = b'Executable = "run.sh";\nInputSandbox = {"run.sh", "cards"};\nMyProxyServer = "x";\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.jdl").write_bytes(JDL)
    (tmp_path / "cards").write_text("1")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    return tmp_path


def test_files_are_found_beside_the_document(folder: Path) -> None:
    found = jobs_of_file(str(folder / "job.jdl"), JDL, lenient=True)
    assert [each.executable for each in found.descriptions] == ["./run.sh"]
    assert found.files == [{"run.sh": folder / "run.sh", "cards": folder / "cards"}]


def test_a_plan_shows_the_files_and_the_losses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["submit", "--data", str(folder), "--dry-run", "--lenient", "--json", str(folder / "job.jdl")]
    assert run(words) == 0
    said = capsys.readouterr()
    (description,) = msgspec.json.decode(said.out)["descriptions"]
    assert description["executable"] == "./run.sh"
    assert "MyProxyServer" in said.err


def test_a_missing_file_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cards").unlink()
    assert run(["submit", "--data", str(folder), "--dry-run", "--lenient", str(folder / "job.jdl")]) == 2
    assert "cards, which is no file" in capsys.readouterr().err


SUBMIT = b"executable = run.sh\ntransfer_input_files = d/, e\ngetenv = WMS_NOT*, SHELL_X\nqueue x matching files d/*\n"


def test_a_submit_file_takes_directories_and_names_of_this_machine(folder: Path) -> None:
    for name in ("d/a", "d/b", "e/c"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    document = str(folder / "job.sub")
    found = jobs_of_file(document, SUBMIT + b"queue x matching dirs *\n")
    names = {"run.sh": folder / "run.sh", "a": folder / "d/a", "b": folder / "d/b", "e/c": folder / "e/c"}
    assert found.files == [names, names]
    assert [each.array for each in found.descriptions] == [2, 2]


def test_a_program_that_may_not_be_executed_is_refused(folder: Path) -> None:
    (folder / "run.sh").chmod(0o644)
    with pytest.raises(Rejected, match="may not be executed"):
        jobs_of_file(str(folder / "job.sub"), b"executable = run.sh\nqueue\n")


def test_two_files_of_one_name_are_refused(folder: Path) -> None:
    text = b"executable = run.sh\ntransfer_input_files = cards, x/cards\nqueue\n"
    (folder / "x").mkdir()
    (folder / "x/cards").write_text("2")
    with pytest.raises(Rejected, match="would both be cards"):
        jobs_of_file(str(folder / "job.sub"), text)


def test_a_converted_document_tells_that_its_files_stay(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "job.sub").write_text("executable = run.sh\nqueue\n")
    assert run(["convert", str(folder / "job.sub")]) == 2
    assert "run.sh: goes with the jobs of the source document alone" in capsys.readouterr().err
    assert run(["convert", str(folder / "job.sub"), "--lenient"]) == 0


def test_a_program_may_be_executed_whatever_its_mode(folder: Path) -> None:
    (folder / "run.sh").chmod(0o644)
    (files,) = jobs_of_file(str(folder / "job.jdl"), JDL, lenient=True).files
    packed = io.BytesIO()
    pack(files, packed)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        assert {each.name: each.mode for each in archive} == {"run.sh": 0o755, "cards": 0o644}


def test_patterns_of_a_sandbox_are_the_files_that_match(folder: Path) -> None:
    text = b'Executable = "/bin/cat"; InputSandbox = {"c*s", "run.??"};'
    (files,) = jobs_of_file(str(folder / "job.jdl"), text).files
    assert files == {"cards": folder / "cards", "run.sh": folder / "run.sh"}
    with pytest.raises(InvalidDescription, match="matches no file"):
        jobs_of_file(str(folder / "job.jdl"), b'Executable = "/bin/cat"; InputSandbox = {"x*"};')


PREFERENCES = "<JobPreferences><JobRequirement><LatestRelativeStart>30</LatestRelativeStart></JobRequirement></JobPreferences>"
OWN = 'executable = "/bin/date"\npreferences = {objective = "earliest-start"}\n'


@pytest.mark.parametrize("words", [("jobs.toml",), ("--", "/bin/date")])
def test_preferences_of_a_document_of_their_own_are_for_all_jobs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(OWN)
    (tmp_path / "prefs.xml").write_text(PREFERENCES)
    submit = ["submit", "--data", str(tmp_path), "--dry-run", "--json", "--preferences"]
    assert run([*submit, "prefs.xml", *words]) == 0
    (job,) = msgspec.json.decode(capsys.readouterr().out)["descriptions"]
    assert job == {"executable": "/bin/date", "preferences": {"latest_start_after": 1800.0}}
    assert run([*submit, "jobs.toml", *words]) == 2
    assert "jobs.toml" in capsys.readouterr().err
