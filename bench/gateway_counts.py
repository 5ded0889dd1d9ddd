"""How long counts of many jobs take through HTTPS, piece by piece, and what a user who counts in a loop costs another one."""

import asyncio
import contextlib
import time
from collections.abc import Mapping

from bench.gateway_users import Users
from bench.measuring import Figures, median, percentile

PAGE = "/jobs?limit=50&newest=true"


async def count(users: Users, user: int, chosen: str) -> Figures:
    """Count the chosen jobs to the end: how many there are, in how many requests, how long they took, and the longest of them."""
    taken: list[float] = []
    jobs, below = 0, ""
    while True:
        began = time.perf_counter()
        piece = await users.ask(user, "GET", f"/jobs/counts?{chosen}&in_pieces=true{below}")
        taken.append(time.perf_counter() - began)
        jobs += sum(piece["counts"].values())
        if piece["counted_from"] is None:
            return {
                "jobs": jobs,
                "requests": len(taken),
                "seconds": round(sum(taken), 2),
                "longest_ms": percentile([1e3 * each for each in taken], 1.0),
            }
        below = f"&below={piece['counted_from']}"


async def counts(users: Users, selections: Mapping[str, tuple[int, str]]) -> Figures:
    """Count each selection, by its name: a user and what is chosen."""
    return {name: await count(users, user, chosen) for name, (user, chosen) in selections.items()}


async def beside_counts(users: Users, counting: int, looking: int, seconds: float) -> Figures:
    """Ask for the newest page for so many seconds, alone and while another user counts all jobs in a loop."""
    alone = await _pages(users, looking, seconds)
    loop = asyncio.ensure_future(_for_ever(users, counting))
    try:
        beside = await _pages(users, looking, seconds)
    finally:
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop
    return {"alone": alone, "beside": beside}


async def _pages(users: Users, user: int, seconds: float) -> Figures:
    found: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        await users.ask(user, "GET", PAGE)
        found.append(1e3 * (time.perf_counter() - began))
    return {"p50_ms": median(found), "p99_ms": percentile(found, 0.99)}


async def _for_ever(users: Users, user: int) -> None:
    while True:
        await count(users, user, "everything=true")
