"""`python -m tests.testbed.agreement --crashes N`: crash the agreement service so often over real Slurm; the exit code says if all held."""

import argparse
import asyncio
import logging
import secrets
import sys
import tempfile
from pathlib import Path

from tests.middleware import a_testbed
from tests.services.world import world
from tests.testbed.agreement.cluster import listed
from tests.testbed.agreement.crashes import Crashes, CrashReport
from wms.db.migrate import migrate
from wms.embedded.broker import Broker
from wms.embedded.postgres import Postgres


async def crash(crashes: int, seed: int) -> CrashReport:
    with a_testbed() as sites, tempfile.TemporaryDirectory(prefix="wms-crashes-") as name:
        place = Path(name)
        async with Postgres(place / "postgres", durable=False) as server, Broker(place / "broker") as broker:
            await migrate(server.url)
            async with world(server.url) as the_world:
                slurm = sites.slurm("beta")
                run = Crashes(
                    the_world, broker.bootstrap, slurm, place / "run", lambda: set(listed(sites)), seed
                )
                return await run.run(crashes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.agreement", description=__doc__)
    parser.add_argument("--crashes", type=int, default=1_000)
    parser.add_argument(
        "--seed", type=int, default=None, help="of the plan; one is chosen and printed unless given"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}\n")
    report = asyncio.run(crash(options.crashes, seed))
    sys.stdout.write(report.text() + "\n")
    return 1 if report.left else 0


if __name__ == "__main__":
    sys.exit(main())
