"""The manual pages."""

import shutil
import subprocess
from pathlib import Path

import pytest

from wms.cli.__main__ import run
from wms.cli.manual import pages


def test_every_command_has_a_manual_page() -> None:
    found = dict(pages())
    for name in ("wms", "wms-submit", "wms-limits-set", "wms-site-ban", "wms-top"):
        assert found[name].startswith(f'.TH "{name.upper()}" 1')
    for name, command in (("wms", "submit"), ("wms-limits", "lift")):
        assert f".TP\n.B {command}\n" in found[name], "commands run together"
    text = found["wms-submit"]
    for part in (
        ".SH NAME",
        ".SH SYNOPSIS",
        ".SH FOR EXAMPLE",
        "\\-\\-cpu\\-time",
        "wms submit \\-\\- echo hello",
    ):
        assert part in text, part


def test_manual_pages_are_right_for_roff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["man", "--to", str(tmp_path / "man1")]) == 0
    assert "pages in" in capsys.readouterr().out
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not here to judge them")
    for path in sorted((tmp_path / "man1").glob("*.1")):
        done = subprocess.run(
            [groff, "-man", "-Tascii", "-ww", path], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), path
