"""Closures: which jobs may not start now at a site or computing element, named by pairs of an attribute and a value.

A limit that is reached closes such a pair, for example an owner or a tag. The pair opens again when a job has ended. A queue gives no
jobs to a place where any of its own pairs is closed.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from wms.bounded_cache import BoundedCache
from wms.ids import CeId
from wms.matching.closed_pairs import VALUES, WORK, Pair, compared, has, pairs
from wms.matching.grouping import Requirements
from wms.site import Resource

Mask = NDArray[np.bool_]

_NOTHING: frozenset[Pair] = frozenset()
_REMEMBERED = 8_192


class Closures:
    """The pairs that are closed at each site and computing element, and the queues whose jobs may not start there for that reason.

    A queue's slot is its row number in the index.
    """

    def __init__(self) -> None:
        self._places: dict[CeId, frozenset[Pair]] = {}
        self._avoided: dict[CeId, str] = {}
        self.renumber(())

    def __bool__(self) -> bool:
        return bool(self._places or self._avoided)

    def renumber(self, requirements: Iterable[Requirements]) -> None:
        """Replace all queues by those with these requirements, by slot. The closed pairs stay."""
        self._requirements = list(requirements)
        self._masks: dict[Pair, Mask] = {}
        self._left = BoundedCache[tuple[str, str, int], tuple[bytes, bytes]](_REMEMBERED)
        """Cached results of `left_open`, by site, element and the identity of the argument `fit`; each with that argument."""

    def append(self, requirements: Requirements) -> None:
        """Add a queue with these requirements; its slot is the number of queues added before."""
        self._requirements.append(requirements)
        self._left.clear()

    def close(self, site: str, ce: str, closed: Iterable[Pair]) -> None:
        """Set whose jobs may not start now at a computing element, or at the whole site if `ce` is empty.

        `closed` are pairs of an attribute and a value, such as ("owner", "alice"). They replace those set before; without any,
        the place is open. Raise ValueError for an unknown attribute.
        """
        found = frozenset(map(compared, closed))
        unknown = sorted({name for name, _ in found} - VALUES.keys())
        if unknown:
            raise ValueError(f"nothing is closed by {', '.join(unknown)}; known are {', '.join(VALUES)}")
        for key in [key for key in self._left if key[0] == site]:
            del self._left[key]
        self._places.pop(CeId(site, ce), None)
        if found:
            self._places[CeId(site, ce)] = found
        in_use = frozenset({WORK}).union(*self._places.values())
        self._masks = {pair: mask for pair, mask in self._masks.items() if pair in in_use}

    def avoid(self, places: Mapping[CeId, str]) -> None:
        """Replace the avoided places, which take no jobs but canaries (small test jobs), each with the reason.

        A key is a site and a computing element; an empty computing element means the whole site.
        """
        self._left.clear()
        self._avoided = dict(places)

    def at(self, site: str, ce: str) -> frozenset[Pair]:
        """Return the pairs (attribute and value) whose jobs may not start now at a computing element, or at its site."""
        if not self:
            return _NOTHING
        closed = self._places.get(CeId(site, ""), _NOTHING)
        if ce:
            closed |= self._places.get(CeId(site, ce), _NOTHING)
        return closed | {WORK} if self._why_avoided(site, ce) is not None else closed

    def _why_avoided(self, site: str, ce: str) -> str | None:
        whole = self._avoided.get(CeId(site, ""))
        return self._avoided.get(CeId(site, ce)) if whole is None else whole

    def slots(self, site: str, ce: str) -> Mask | None:
        """Return a mask by slot, true for each queue whose jobs may not start at this place; None if no pair is closed there."""
        closed = self.at(site, ce)
        return np.logical_or.reduce([self._mask(pair) for pair in closed]) if closed else None

    def shut(self, site: str, ce: str) -> Mask | None:
        """Return a mask by slot, true for each queue that gets no jobs because the place is avoided; None if the place is not avoided."""
        return self._mask(WORK) if WORK in self.at(site, ce) else None

    def left_open(self, fit: bytes, site: str, ce: str) -> bytes:
        """Return the bits of `fit`, one for each slot, without the queues whose jobs may not start at this place."""
        known = self._left.get((site, ce, id(fit)))
        if known is None or known[0] is not fit:
            known = self._left[site, ce, id(fit)] = fit, self._without_closed(fit, site, ce)
        return known[1]

    def _without_closed(self, fit: bytes, site: str, ce: str) -> bytes:
        closed = self.slots(site, ce)
        if closed is None:
            return fit
        bits = np.packbits(~closed, bitorder="little")
        return (np.frombuffer(fit, dtype=np.uint8) & bits).tobytes()

    def detail(self, resource: Resource, slot: int) -> str:
        """Return the reason, as text, why jobs of the queue in a slot may not start at a resource.

        The caller knows that they may not.
        """
        here = self.at(resource.site, resource.grid_ce) & pairs(self._requirements[slot])
        if WORK in here:
            return self._why_avoided(resource.site, resource.grid_ce) or ""
        name, value = min(here)
        return f"no more jobs of {name} {value!r} may start at {resource.site} now"

    def _mask(self, pair: Pair) -> Mask:
        mask = self._masks.get(pair, np.empty(0, dtype=np.bool_))
        if len(mask) < len(self._requirements):
            new = self._requirements[len(mask) :]
            judged = np.fromiter((has(each, pair) for each in new), dtype=np.bool_, count=len(new))
            mask = self._masks[pair] = np.concatenate([mask, judged])
        return mask
