"""`python -m tests.testbed.agreement --crashes N`: crash services so often over real Slurm; the exit code says if all held.

Of a whole system: broker, pilot submitter, and the agreement services of two clusters; with --alone one agreement service, amid
messages that no broker would send.
"""

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
from tests.testbed.agreement.system_crashes import SystemCrashReport, system_crashes
from wms.db.migrate import migrate
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.postgres import Postgres


async def crash_system(crashes: int, seed: int, seconds: float) -> SystemCrashReport:
    with a_testbed() as sites:
        async with system_crashes(sites, seed) as run:
            return await run.run(crashes, seconds)


async def crash_alone(crashes: int, seed: int) -> CrashReport:
    with a_testbed() as sites, tempfile.TemporaryDirectory(prefix="wms-crashes-") as name:
        place = Path(name)
        async with (
            Postgres(place / "postgres", durable=False) as server,
            KafkaBroker(place / "broker") as broker,
        ):
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
        "--seconds", type=float, default=float("inf"), help="kill for no longer, however many that makes"
    )
    parser.add_argument("--alone", action="store_true", help="crash one agreement service alone")
    parser.add_argument(
        "--seed", type=int, default=None, help="of the plan; one is chosen and printed unless given"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    report: CrashReport | SystemCrashReport
    if options.alone:
        report = asyncio.run(crash_alone(options.crashes, seed))
    else:
        report = asyncio.run(crash_system(options.crashes, seed, options.seconds))
    sys.stdout.write(report.text() + "\n")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
