"""Starts and ends a testbed: `python -m deploy.testbed up|down|run DIR`, `python -m deploy.testbed install`."""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

from deploy.testbed import packages
from deploy.testbed.daemons import TestbedError
from deploy.testbed.testbed import PROGRAMS, SITES, Testbed


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="testbed", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "run", "install", "missing"))
    parser.add_argument("directory", nargs="?", type=Path, default=Path("/tmp/wms-testbed"))
    given = parser.parse_args()
    try:
        return _do(given.verb, given.directory)
    except TestbedError as error:
        sys.stderr.write(f"testbed: {error}\n")
        return 1


def _do(verb: str, directory: Path) -> int:
    match verb:
        case "install":
            packages.install(packages.missing({**PROGRAMS, **packages.SANDBOX, **packages.STORAGE}))
        case "missing":
            print(packages.lack(PROGRAMS))
        case "up":
            _up(Testbed(directory))
        case "down":
            Testbed(directory).down()
        case "run":
            _run(Testbed(directory))
    return 0


def _up(testbed: Testbed) -> None:
    if lack := packages.lack(PROGRAMS):
        raise TestbedError(f"this machine lacks {lack}")
    began = time.monotonic()
    testbed.up()
    print(f"up after {time.monotonic() - began:.1f} s: {testbed.root / SITES}", flush=True)
    for name, cluster in testbed.clusters.items():
        print(f"  {name}: export SLURM_CONF={cluster.configuration}", flush=True)


def _run(testbed: Testbed) -> None:
    """Keep the testbed up until standard input ends, as it does with whoever holds its other end, or SIGTERM comes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _up(testbed)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()
    finally:
        testbed.down()


if __name__ == "__main__":
    sys.exit(main())
