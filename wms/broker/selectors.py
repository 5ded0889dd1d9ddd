"""Selectors: sort keys for candidates, of which users choose one, and the key of those without predictions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import SelectorName
from wms.broker.time_to_delivery import DeliveryTime

Order: TypeAlias = tuple[float, ...]
Selector: TypeAlias = Callable[[Candidate, DeliveryTime], Order]
"""A function that returns a candidate's sort key from the candidate and its predicted times; the least key is best."""


def earliest_completion(_: Candidate, time: DeliveryTime) -> Order:
    """Return a sort key by predicted time to delivery; of equal ones, that with the lower upper end is better."""
    return (time.delivery.seconds, time.delivery.high)


def earliest_start(_: Candidate, time: DeliveryTime) -> Order:
    """Return a sort key by the predicted start (stage-in and wait); of equal ones, by the time to delivery."""
    return (time.start.seconds, time.start.high, time.delivery.seconds)


def queue_length(candidate: Candidate) -> Order:
    """Return the sort key of a candidate by its waiting jobs per slot; of equal ones, more free slots are better.

    Candidates whose load is unknown come last.
    """
    slots = max(1, candidate.slots)
    silent = candidate.waiting_jobs is None and candidate.free_slots is None
    return (float(silent), (candidate.waiting_jobs or 0) / slots, -(candidate.free_slots or 0) / slots)


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType(
    {"earliest-completion": earliest_completion, "earliest-start": earliest_start}
)
"""The selectors that users may choose as a job's objective, by name."""
