"""How fast waiting jobs are matched by the matcher's own code and a durable Postgres; a peer, if named, does the same.

python -m bench.matching [--waiting N] [--queues N] [--requests N] [--rounds N] [--batch N] [--in-flight N] [--drain N]
                      [--peer dirac] [--json]

Measured is all that a batch of requests costs but the broker: selection, claim, lease, history, offsets, offers and events
through the outbox. Every match is checked, by a naive evaluator and in the database; a false one fails the benchmark. A peer
and we work in turn, round after round, so that the ratio of each pair is of one time on one machine.

Then as many jobs wait anew, and `--drain` tenths of them are matched, tenth by tenth: as queues empty a match costs more.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from bench.measuring import Figures, machine, median, run
from bench.ours import WARM_UP, Ours, figures_of
from bench.peers import find_peer
from bench.rounds import KINDS, Kind, Side, alternate, ratio
from bench.store import Store, store
from bench.workload import Shape, make_jobs, make_pilots, make_queues


async def measure(
    waiting: int, queues: int, requests: int, rounds: int, batch: int, in_flight: int, drain: int, peer: str
) -> Figures:
    shape = Shape(queues=queues, waiting=waiting)
    requests = min(requests, max(1, waiting // (2 * rounds)))
    async with store(connections=in_flight + 4) as at:
        about = machine(await at.version())
        ours = waiting_jobs(at, shape, rounds * requests, batch, in_flight)
        found = await in_rounds(ours, requests, rounds, peer)
    if drain:
        async with store(connections=in_flight + 4) as at:
            found["drain"] = await drained(
                waiting_jobs(at, shape, drain * waiting // 10, batch, in_flight), drain
            )
    return {"machine": about, **found}


def waiting_jobs(at: Store, shape: Shape, requests: int, batch: int, in_flight: int) -> Ours:
    """Return the jobs of a shape, still to be loaded, and pilots for so many requests after those that warm up."""
    pilots = make_pilots(shape, WARM_UP + requests)
    return Ours(at, make_queues(shape), make_jobs(shape), pilots, batch=batch, in_flight=in_flight)


async def in_rounds(ours: Ours, requests: int, rounds: int, peer: str) -> Figures:
    """Measure rounds of so many requests, and of insertion; in turn with a peer, if one is named."""
    await ours.load()
    ours.requests = requests
    async with AsyncExitStack() as started:
        if not peer:
            await beside([ours], rounds)
            return {"ours": await ours.figures()}
        theirs = await started.enter_async_context(find_peer(peer)(ours.kinds, ours.jobs, ours.pilots))
        rates = await beside([ours, theirs], rounds)
        ratios = {kind: ratio(*found) for kind, found in rates.items()}
        return {"ours": await ours.figures(), peer: theirs.figures(), "ratio": ratios}


async def beside(sides: Sequence[Side], rounds: int) -> dict[Kind, list[list[float]]]:
    """Let them match in turn, then insert in turn; return the jobs a second of each, round by round."""
    return {kind: await alternate(kind, sides, rounds) for kind in KINDS}


async def drained(ours: Ours, tenths: int) -> Figures:
    """Match so many tenths of the jobs; return the figures of each, and how many times those of the first the last are."""
    await ours.load()
    await ours.warm("matching")
    parts = [await ours.serve(len(ours.jobs) // 10) for _ in range(tenths)]
    await ours.check()
    rows = [figures_of([part]) for part in parts]
    first, last = rows[0], rows[-1]
    times = {
        "matches_per_second": median([last["matches_per_second"] / first["matches_per_second"]]),
        **{
            process: median([last["cpu_us_per_match"][process] / cost])
            for process, cost in first["cpu_us_per_match"].items()
        },
    }
    return {"tenths": rows, "last_to_first": times}


if __name__ == "__main__":
    run(
        "matching",
        measure,
        waiting=1_000_000,
        queues=10_000,
        requests=60_000,
        rounds=5,
        batch=1_024,
        in_flight=2,
        drain=7,
        peer="",
    )
