"""Installs what a peer's `requirements.txt` names, in an environment of its own below the project's `.cache`."""

import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parent
CACHE = Path(__file__).parents[2] / ".cache" / "peers"


def install(peer: str) -> Path:
    """Install what is not there yet; return the interpreter that has it. `peer` names a folder beside this file."""
    place = CACHE / peer
    wanted, stamp = PEERS / peer / "requirements.txt", place / "installed"
    python = place / "venv" / "bin" / "python"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return python
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    _run(place, sys.executable, "-m", "venv", str(place / "venv"))
    pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    _run(place, *pip, "-r", str(wanted))
    stamp.write_text(wanted.read_text())
    return python


def _run(place: Path, *argv: str) -> None:
    done = subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        text = (done.stdout + done.stderr)[-2_000:]
        raise SystemExit(f"{' '.join(argv[:4])} failed (it needs a package index):\n{text}")
