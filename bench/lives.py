"""Whole lives of jobs that do nothing, beside a peer that has workers of its own: matched, accepted, begun, done.

python -m bench.lives [--jobs N] [--queues N] [--slots N] [--seconds N] [--rounds N] [--peer awa] [--json]

The two work in turn, round after round, each with a Postgres of the same settings. Ours go through the broker, and all services
run; SLOTS is what one request asks for.
"""

from contextlib import AsyncExitStack

from bench.brokered import LIVES, Bench, one, saturate
from bench.measuring import Figures, machine, median, postgres_version, run, system
from bench.peers.awa import peer as awa
from bench.rounds import ratio
from bench.stock import Stock
from wms.bus.kafka import Kafka
from wms.client import read_settings


async def measure(jobs: int, queues: int, slots: int, seconds: int, rounds: int, peer: str) -> Figures:
    if peer not in ("", "awa"):
        raise SystemExit(f"no peer is called {peer}; known: awa")
    async with AsyncExitStack() as started:
        running = await started.enter_async_context(system())
        about = machine(await postgres_version(running))
        kafka = Kafka(read_settings(running.layout.root, {}).kafka, "bench")
        await kafka.start()
        started.push_async_callback(kafka.close)
        bench = Bench(running, kafka, Stock(running, queues), jobs)
        theirs = await started.enter_async_context(awa.start()) if peer else None
        found = await _in_turn(bench, theirs, slots, seconds, rounds)
    return {"machine": about, "waiting_jobs": jobs, "task_queues": queues, **found}


async def _in_turn(bench: Bench, theirs: awa.Awa | None, slots: int, seconds: int, rounds: int) -> Figures:
    ours, rates, others = [], [], []
    if theirs:
        await theirs.round()  # warms up; ours does so in each round
    for _ in range(rounds):
        ours.append(await one(bench, slots, saturate(slots, LIVES), seconds, lives=True))
        rates.append(float(ours[-1]["lives_per_second"]))
        if theirs:
            others.append(await theirs.round())
    figures: Figures = {"lives_per_second": median(rates), "all_per_second": rates, "rounds": ours}
    if theirs:
        them = {**theirs.figures(), "lives_per_second": median(others), "all_per_second": others}
        figures |= {"awa": them, "ratio": ratio(rates, others)}
    return figures


if __name__ == "__main__":
    run("lives", measure, jobs=100_000, queues=400, slots=16, seconds=10, rounds=5, peer="")
