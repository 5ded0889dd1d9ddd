"""Selectors: the order of candidates. Two serve users; random choice and the shortest queue are what benchmarks compare them with."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import SelectorName
from wms.broker.time_to_delivery import DeliveryTime

Order: TypeAlias = tuple[float, ...]
Selector: TypeAlias = Callable[[Candidate, DeliveryTime], Order]
"""A function that returns by what a candidate is ordered, the least first."""


def earliest_completion(_: Candidate, time: DeliveryTime) -> Order:
    """Order by the time to delivery; of equal ones the surer is first."""
    return (time.delivery.seconds, time.delivery.high)


def earliest_start(_: Candidate, time: DeliveryTime) -> Order:
    """Order by stage-in and waiting; of equal ones by the time to delivery."""
    return (time.start.seconds, time.start.high, time.delivery.seconds)


def shortest_queue(candidate: Candidate, _: DeliveryTime) -> Order:
    """Order by `queue_length`. A baseline."""
    return queue_length(candidate)


def queue_length(candidate: Candidate) -> Order:
    """Return waiting jobs for each slot; of equal ones that with more free slots is first, and those that tell no load are last."""
    slots = max(1, candidate.slots)
    silent = candidate.waiting_jobs is None and candidate.free_slots is None
    return (float(silent), (candidate.waiting_jobs or 0) / slots, -(candidate.free_slots or 0) / slots)


def random_choice(rng: Callable[[], float]) -> Selector:
    """Return a selector without preference; `rng` returns numbers in [0, 1). A baseline."""
    return lambda *_: (rng(),)


SELECTORS: Final[Mapping[SelectorName, Selector]] = MappingProxyType(
    {"earliest-completion": earliest_completion, "earliest-start": earliest_start}
)
"""The selectors that users may choose, by their names."""
