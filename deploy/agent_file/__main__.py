"""Builds the job agent as one file: `python -m deploy.agent_file FILE`, for some Pythons alone with `--python 3.11`."""

import argparse
import hashlib
import sys
from pathlib import Path

from deploy.agent_file.build import MACHINES, PYTHONS, build

TREE = Path(__file__).resolve().parents[2]


def main() -> None:
    """Build the file that the command line names, and print its size and digest."""
    parser = argparse.ArgumentParser(prog="python -m deploy.agent_file", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=Path("wms-agent.pyz"))
    parser.add_argument("--python", action="append", choices=PYTHONS, help="by default all of these")
    parser.add_argument("--machine", choices=MACHINES, default=MACHINES[0], help="default: %(default)s")
    given = parser.parse_args()
    to, pythons = given.file.absolute(), given.python or PYTHONS
    size = build(TREE, to, TREE / ".cache" / "agent_file", pythons, given.machine)
    digest = hashlib.sha256(to.read_bytes()).hexdigest()
    sys.stdout.write(
        f"{to}: {size:,} bytes for Python {', '.join(pythons)} on Linux {given.machine}, sha256 {digest}\n"
    )


if __name__ == "__main__":
    main()
