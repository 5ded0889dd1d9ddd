"""`python -m tests.hostile --seconds N --rate R`: fuzz every topic of a whole system; the exit code says whether all held."""

import argparse
import asyncio
import contextlib
import logging
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import quick_system
from tests.hostile.fuzzer import OWNER, Fuzzer
from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.served import ServedWatch, not_served
from tests.hostile.target import attacked
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, select
from wms.errors import Unavailable


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="fuzz for so long")
    parser.add_argument("--rate", type=float, default=28.0, help="messages a second; 28 are 100,000 an hour")
    parser.add_argument(
        "--seed", type=int, default=None, help="of the messages; one is chosen and printed unless given"
    )
    parser.add_argument("--keep", action="store_true", help="leave the directory there even if all held")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    root = Path(tempfile.mkdtemp(prefix="wms-hostile-"))
    sys.stdout.write(
        f"seed {seed}, {options.rate:g} messages a second for {options.seconds:g} s, in {root}\n"
    )
    sys.stdout.flush()
    faults = asyncio.run(fuzz(root, options.seconds, options.rate, seed))
    for each in faults:
        sys.stdout.write(f"FAULT  {each}\n")
    sys.stdout.write("all held\n" if not faults else f"{len(faults)} faults\n")
    if not faults and not options.keep:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if faults else 0


async def fuzz(root: Path, seconds: float, rate: float, seed: int) -> list[str]:
    """Fuzz a system of its own beside an innocent user, and return everything that did not hold."""
    async with quick_system(root) as system, attacked(system) as target:
        fuzzer, watch = Fuzzer(target, rate=rate, seed=seed), ServedWatch(target.database)
        async with Client.connect(target.settings(Innocent.owner)) as client:
            innocent = Innocent(client, target)
            await innocent.learn_usual()
            faults = await _beside(innocent, fuzzer, watch, seconds)
        async with Client.connect(system.layout.root) as operator:
            # What of the fuzzer's own jobs waits or runs must not hide what is left behind.
            await operator.kill(select(owner=OWNER))
        sys.stdout.write(await fuzzer.summary() + "\n" + _longest(watch))
        report = await audit(target.database)
        sys.stdout.write(report.text(brief=True) + "\n")
        return [*faults, *watch.faults(), *([] if report.ok else ["the audit does not hold"])]


async def _beside(innocent: Innocent, fuzzer: Fuzzer, watch: ServedWatch, seconds: float) -> list[str]:
    faults = []
    watching = asyncio.create_task(watch.run())
    try:
        async with innocent.beside() as beside:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await fuzzer.run()
        sys.stdout.write(
            f"innocent jobs: {len(beside.seconds)}, usually {innocent.usual_seconds:.2f} s,"
            f" the slowest {max(beside.seconds)} s\n"
        )
        await eventually(lambda: _all_served(innocent), PATIENCE_SECONDS)
    except (AssertionError, Unavailable) as fault:
        faults.append(f"{type(fault).__name__}: {fault}")
    finally:
        watching.cancel()
    return faults


async def _all_served(innocent: Innocent) -> bool:
    wrong = await not_served(innocent.target.root)
    assert not wrong, wrong
    return True


def _longest(watch: ServedWatch) -> str:
    told = (f"{consumer} {seconds} s" for consumer, seconds in sorted(watch.longest.items()))
    return f"longest without a probe that came back ({watch.looks} looks): {', '.join(told)}\n"


if __name__ == "__main__":
    sys.exit(main())
