from pathlib import Path

import msgspec
import pytest

from tests.unit.jobdesc.languages.jsdl.documents import document
from wms.cli.__main__ import run
from wms.jobdesc.languages import catalogue

LOSSY = document("<p:Executable>/bin/x</p:Executable>\n<p:CoreDumpLimit>0</p:CoreDumpLimit>")


@pytest.fixture
def lossy(tmp_path: Path) -> str:
    path = tmp_path / "job.txt"
    path.write_bytes(LOSSY)
    return str(path)


def test_the_document_goes_out_and_the_report_beside_it(
    lossy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["convert", lossy, "--lenient"]) == 0
    told = capsys.readouterr()
    assert told.out == 'executable = "/bin/x"\n'
    assert "1 kept, 1 impossible" in told.err
    assert "3  p:CoreDumpLimit  impossible" in told.err
    assert max(map(len, told.err.splitlines()[1:])) <= 80


def test_a_loss_is_refused(lossy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", lossy]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "CoreDumpLimit (line 3)" in told.err


def test_json_has_document_and_report(lossy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", lossy, "--to", "json", "--json", "--lenient"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["from"] == "jsdl"
    assert msgspec.json.decode(told["document"]) == {"executable": "/bin/x"}
    assert [each["fate"] for each in told["read"]] == ["kept", "impossible"]


@pytest.mark.parametrize("to", ["toml", "json", "jsdl", "xrsl"])
def test_every_writer_is_reached(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text('executable = "/bin/x"\narguments = ["a b"]\n')
    assert run(["convert", str(path), "--to", to]) == 0
    [description] = catalogue.translate(capsys.readouterr().out.encode()).jobs(lenient=True)
    assert (description.executable, description.arguments) == ("/bin/x", ("a b",))


def test_the_choices_are_the_languages_that_are_written() -> None:
    from typing import get_args

    from wms.cli.convert import Target

    assert set(get_args(Target)) == set(catalogue.writable())


@pytest.mark.parametrize("data", [b"\x7fELF", b"just words\n", b"", b"<!DOCTYPE a><a/>"])
def test_what_is_no_description_is_refused(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    assert run(["convert", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err
