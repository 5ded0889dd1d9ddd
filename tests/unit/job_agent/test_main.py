"""The job agent as a program: how it ends, and what its last line says to whoever reads its log."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFIGURATION = """
[pilot]
pilot_id = "p-1"
site = "A"
ce = "ce"
vo = "lhcb"
slots = 1
directory = "jobs"
token_file = "no-token"

[sandboxes]
url = "file:///nowhere"
"""


def ended(*arguments: str) -> tuple[int, str]:
    """Run the program; return its exit code and the last line that it prints."""
    whole = [sys.executable, "-m", "services.job_agent", *arguments]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("config.toml",), ("--config",)])
def test_a_wrong_command_line_is_explained(arguments: tuple[str, ...]) -> None:
    code, said = ended(*arguments)
    assert code == 2
    assert "--config" in said or "unrecognized" in said


def test_a_file_that_is_not_there_ends_it(tmp_dir: Path) -> None:
    code, _ = ended("--config", str(tmp_dir / "missing.toml"))
    assert code == 2


@pytest.mark.parametrize("newer", ["", "[kernel]\nage_days = 3\n"])
def test_without_its_token_it_does_not_begin(tmp_dir: Path, newer: str) -> None:
    """It gets so far with tables that it does not know: a newer submitter wrote the configuration."""
    config = tmp_dir / "pilot.toml"
    config.write_text(CONFIGURATION + newer)
    code, said = ended("--config", str(config))
    assert code == 2
    assert "NO_TOKEN" in said
