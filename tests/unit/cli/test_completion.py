"""What a shell offers on tab, and the manual pages."""

import subprocess
from pathlib import Path

import pytest

from wms.cli.__main__ import run
from wms.cli.completion import SCRIPTS, candidates


def known(kind: str) -> list[str]:
    return {"sites": ["CERN", "CNAF"], "elements": ["ce01", "ce02"], "jobs": ["17", "18", "201"]}[kind]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["su"], ["submit"]),
        (["jobs", "--sta"], ["--state"]),
        (["jobs", "--state", "Ru"], ["Running"]),
        (["jobs", "--state", "l"], ["live"]),
        (["submit", "--site", "C"], ["CERN", "CNAF"]),
        (["submit", "--ce", ""], ["ce01", "ce02"]),
        (["kill", "1"], ["17", "18"]),
        (["logs", "--stderr", "2"], ["201"]),
        (["logs", "--tail", ""], []),
        (["limits", "re"], ["reset"]),
        (["limits", "lift", "--kind", "r"], ["running", "rate"]),
        (["limits", "lift", "--attr"], ["--attribute"]),
        (["site", "b"], ["ban"]),
        (["site", "ban", "CE"], ["CERN"]),
        (["site", "ban", "CERN", ""], ["ce01", "ce02"]),
        (["reservations", "--state", "Co"], ["Confirmed"]),
        (["reservations", "2"], ["201"]),
        (["reservations", "c"], ["cancel"]),
        (["reservations", "201", "1"], ["17", "18"]),
        (["show", "17", "2"], ["201"]),
        (["jobs", "--format", ""], ["table", "ids", "json", "csv"]),
        (["jobs", "--columns", "na"], ["name"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["submit", "--", "ca"], []),
        (["submit", "j"], []),
    ],
)
def test_what_a_shell_offers(words: list[str], offered: list[str]) -> None:
    assert candidates(words, known) == offered


def test_every_option_of_a_command_is_offered() -> None:
    offered = candidates(["jobs", "--"], known)
    for option in ("--state", "--group", "--since", "--json", "--timeout", "--help", "--columns"):
        assert option in offered


def test_without_a_system_nothing_is_offered_and_nothing_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WMS_DATA", str(tmp_path / "none"))
    assert run(["_complete", "kill", ""]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert run(["_complete"]) == 0
    assert "submit" in capsys.readouterr().out.split()


def test_bash_takes_the_script(tmp_path: Path) -> None:
    script = tmp_path / "wms.bash"
    script.write_text(SCRIPTS["bash"])
    subprocess.run(["bash", "-n", str(script)], check=True)
