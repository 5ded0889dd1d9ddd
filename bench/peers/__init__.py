"""Other systems, measured over the same workload by code of their own, in environments of their own.

HyperQueue, which runs programs and matches nothing, is `bench.end_to_end`'s alone.
"""

from collections.abc import Awaitable, Callable, Sequence

from bench.measuring import Figures
from bench.workload import Jobs, Pilot, Queue

Peer = Callable[[Sequence[Queue], Jobs, Sequence[Pilot]], Awaitable[Figures]]


def find_peer(name: str) -> Peer:
    """Return what measures the peer of that name, which installs it where need be."""
    if name == "dirac":
        from bench.peers.dirac.peer import measure

        return measure
    raise SystemExit(f"no peer is called {name}; known: dirac")
