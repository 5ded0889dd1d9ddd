"""Installs HyperQueue in an environment of its own below the project's `.cache`, where nothing else sees it."""

import shutil
import subprocess
import sys
from pathlib import Path

WANTED = Path(__file__).with_name("requirements.txt")
PLACE = Path(__file__).parents[3] / ".cache" / "peers" / "hyperqueue"


def python() -> Path:
    """Return the interpreter that has HyperQueue."""
    return PLACE / "venv" / "bin" / "python"


def install() -> None:
    """Install what is not there yet."""
    stamp = PLACE / "installed"
    if stamp.exists() and stamp.read_text() == WANTED.read_text():
        return
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    _run(sys.executable, "-m", "venv", str(PLACE / "venv"))
    pip = (str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(*pip, "-r", str(WANTED))
    stamp.write_text(WANTED.read_text())


def _run(*argv: str) -> None:
    done = subprocess.run(argv, cwd=PLACE, capture_output=True, text=True, check=False)
    if done.returncode:
        text = (done.stdout + done.stderr)[-2_000:]
        raise SystemExit(f"{' '.join(argv[:4])} failed (it needs a package index):\n{text}")
