"""Other systems, measured over the same workload by code of their own, in environments of their own.

HyperQueue and awa match nothing: HyperQueue, which runs programs, is `bench.end_to_end`'s alone, awa `bench.lives`'.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bench.measuring import Figures
from bench.rounds import Side
from bench.workload import Jobs, Pilot, Queue


class Peer(Side, Protocol):
    """Another system that matches jobs and takes them."""

    def figures(self) -> Figures:
        """Return what it found; InvalidError unless all its matches were right."""


Start = Callable[[Sequence[Queue], Jobs, Sequence[Pilot]], AbstractAsyncContextManager[Peer]]


def find_peer(name: str) -> Start:
    """Return what starts the peer of that name with the jobs loaded, and installs it where need be."""
    if name == "dirac":
        from bench.peers.dirac.peer import start

        return start
    raise SystemExit(f"no peer is called {name}; known: dirac")
