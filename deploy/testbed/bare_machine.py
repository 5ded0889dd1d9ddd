"""Runs a command as if nothing optional were installed: `python -m deploy.testbed.bare_machine COMMAND [ARGUMENT ...]`.

What is hidden is hidden in a mount namespace of the command's own, which only root can make.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from deploy.testbed import packages
from deploy.testbed.testbed import PROGRAMS

OPTIONAL = {**PROGRAMS, **packages.BESIDE}
NEEDED = ("setpriv",)
"""Programs of packages without which there is no Debian."""


def main() -> int:
    """Run the command line's command. Return its exit code, or 69 if nothing can be hidden here."""
    command = sys.argv[1:]
    inside = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*inside, "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        sys.stderr.write("bare_machine: NOTHING CAN BE HIDDEN HERE: that takes root and the right to mount\n")
        return os.EX_UNAVAILABLE
    hidden = sorted({path for program in OPTIONAL for path in places(program)})
    script = " && ".join([*map(_hiding, hidden), 'exec "$@"'])
    return subprocess.run([*inside, "sh", "-c", script, "sh", *command], check=False).returncode


def places(program: str) -> Iterable[Path]:
    """Yield where a program, or a file with an absolute path, is on this machine."""
    if program in NEEDED:
        return
    for directory in [""] if program.startswith("/") else packages.SEARCHED.split(":"):
        if found := shutil.which(program, path=directory) if directory else program:
            path = Path(found).resolve()
            if path.exists():
                yield path


def _hiding(path: Path) -> str:
    what = ["-t", "tmpfs", "none"] if path.is_dir() else ["--bind", os.devnull]
    return shlex.join(["mount", *what, str(path)])


if __name__ == "__main__":
    sys.exit(main())
