from pathlib import Path

import pytest

from tests.unit.jobdesc.languages.jsdl.documents import document
from wms.cli.description_files import ROWS, is_recognised, jobs_of_file, note_entries, translation_of
from wms.errors import Rejected
from wms.jobdesc.loss_report import LossEntry
from wms.jobdesc.problem import InvalidDescription

LOSSY = document("<p:Executable>/bin/x</p:Executable>\n<p:CoreDumpLimit>0</p:CoreDumpLimit>")


def test_files_are_recognised_by_content_unless_they_are_programs(tmp_path: Path) -> None:
    path = tmp_path / "anything"
    path.write_bytes(LOSSY)
    assert is_recognised(str(path))
    path.chmod(0o755)
    assert is_recognised(str(path)), "a shared disk gives every file that mode"
    assert not is_recognised(str(path), program=True)
    path.write_bytes(b"#!/bin/sh\nqueue\n")
    assert not is_recognised(str(path))
    assert not is_recognised(str(tmp_path))
    assert not is_recognised("/nowhere")


SCRIPT = b"#!/bin/sh\n#SBATCH -n 2\nls\n"


def test_a_batch_script_is_recognised_even_if_it_may_be_executed_but_not_after_dashes(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_bytes(SCRIPT)
    path.chmod(0o755)
    assert is_recognised(str(path))
    assert not is_recognised(str(path), program=True)


def test_losses_are_told_and_refused_if_strict(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(jobs_of_file("job", LOSSY, lenient=True).descriptions) == 1
    assert "p:CoreDumpLimit" in capsys.readouterr().err
    with pytest.raises(InvalidDescription) as refusal:
        jobs_of_file("job", LOSSY)
    assert refusal.value.problems[0].place == "job: p:CoreDumpLimit"


def test_a_malformed_file_of_ours_has_the_problems_of_its_language() -> None:
    with pytest.raises(InvalidDescription) as refusal:
        translation_of("jobs.json", b"nonsense")
    assert "is not JSON" in str(refusal.value.problems[0])
    with pytest.raises(InvalidDescription) as refusal:
        translation_of("jobs.toml", b"nonsense")
    assert "is not TOML" in str(refusal.value.problems[0])


def test_a_file_of_ours_under_a_wrong_name_is_read_by_its_content() -> None:
    assert translation_of("jobs.txt", b'executable = "x"').language == "toml"
    assert translation_of("jobs.jdl", b'{"executable": "x"}').language == "json"


def test_what_looks_like_no_language_is_refused() -> None:
    with pytest.raises(Rejected, match="is no file of descriptions"):
        translation_of("job", b"\x7fELF")


def test_long_tables_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    note_entries([LossEntry(f"e{n}", "impossible", "why " * 40, line=n) for n in range(ROWS + 5)])
    told = capsys.readouterr().err
    assert "... and 5 more" in told
    assert max(map(len, told.splitlines())) <= 80
