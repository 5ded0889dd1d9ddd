"""`python -m tests.chaos --seconds N --seed S`: kill for so long, then audit; the exit code says whether all held."""

import argparse
import asyncio
import logging
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import Run
from tests.chaos.victims import VICTIMS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="kill for at least so long")
    parser.add_argument(
        "--seed", type=int, default=None, help="of the plan; one is chosen and printed unless given"
    )
    parser.add_argument("--jobs", type=int, default=2_000, help="at least so many jobs")
    parser.add_argument("--kills", type=int, default=30, help="at least so many kills")
    parser.add_argument("--only", nargs="*", choices=VICTIMS, default=VICTIMS, help="kill only these")
    parser.add_argument(
        "--fuzz", type=float, default=0.0, metavar="RATE", help="beside it so many mutated messages a second"
    )
    parser.add_argument(
        "--expensive", action="store_true", help="beside it a user who submits what is expensive to read"
    )
    parser.add_argument(
        "--link",
        choices=("gateway", "kafka"),
        default="gateway",
        help="how pilots reach the services",
    )
    parser.add_argument("--keep", action="store_true", help="leave the directory there even if all held")
    options = parser.parse_args()
    # What a client's library says of a broker that is away on purpose.
    logging.disable(logging.CRITICAL)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    root = Path(tempfile.mkdtemp(prefix="wms-chaos-"))
    sys.stdout.write(f"seed {seed}, in {root}\n")
    one = Run(
        root,
        seed=seed,
        jobs=options.jobs,
        kills=options.kills,
        seconds=options.seconds,
        who=options.only,
        fuzz_rate=options.fuzz,
        is_expensive=options.expensive,
        link=options.link,
    )
    out = asyncio.run(one.run())
    sys.stdout.write(out.text() + "\n")
    if out.ok and not options.keep:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if out.ok else 1


if __name__ == "__main__":
    sys.exit(main())
