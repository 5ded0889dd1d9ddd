"""Starts and ends a testbed: `python -m deploy.testbed up|down|run DIR [--cluster NAME=NODESxCORES ...] [--hide DIR ...]`, `python -m deploy.testbed install`."""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

from deploy.testbed import apptainer, packages
from deploy.testbed.arc import INFORMATION_SECONDS
from deploy.testbed.daemons import TestbedError
from deploy.testbed.slurm import Shape
from deploy.testbed.testbed import CLUSTERS, PROGRAMS, SITES, Testbed

MEMORY_MB_PER_CORE = 400


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="testbed", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "run", "install", "missing"))
    parser.add_argument("directory", nargs="?", type=Path, default=Path("/tmp/wms-testbed"))
    parser.add_argument(
        "--cluster", action="append", type=_shape, metavar="NAME=NODESxCORES",
        help="a cluster instead of the usual two; ARC is over the first",
    )  # fmt: skip
    parser.add_argument(
        "--information-seconds", type=int, default=INFORMATION_SECONDS, metavar="N",
        help="how often ARC's information provider looks, which takes a second of a core",
    )  # fmt: skip
    parser.add_argument(
        "--hide", action="append", type=Path, default=[], metavar="DIR",
        help="put the nodes into a network that reaches this machine alone, and where DIR is empty",
    )  # fmt: skip
    given = parser.parse_args()
    shapes = dict(given.cluster or CLUSTERS)
    try:
        return _do(given.verb, Testbed(given.directory, shapes, given.information_seconds, given.hide))
    except TestbedError as error:
        sys.stderr.write(f"testbed: {error}\n")
        return 1


def _shape(text: str) -> tuple[str, Shape]:
    """Read NAME=NODESxCORES."""
    name, _, size = text.partition("=")
    nodes, _, cores = size.partition("x")
    return name, Shape(nodes=int(nodes), cores=int(cores), memory_mb=MEMORY_MB_PER_CORE * int(cores))


def _do(verb: str, testbed: Testbed) -> int:
    match verb:
        case "install":
            packages.install(packages.missing({**PROGRAMS, **packages.BESIDE}))
            apptainer.install()
        case "missing":
            print(packages.lack(PROGRAMS))
        case "up":
            _up(testbed)
        case "down":
            testbed.down()
        case "run":
            _run(testbed)
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
