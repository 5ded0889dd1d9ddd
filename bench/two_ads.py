"""Whether a job and a computing element want each other, as HTCondor's own library says of their two ads.

One pair at a time, from what both were told, with nothing of ours in between: what the index of the matcher found out by conjuncts and
ad_classes is held against it.
"""

from functools import cache
from typing import Any

import classad2

from bench.expressions import Element
from bench.workload import VO, Pilot, Queue


class Judge:
    """Queues and pilots by their places in lists; `elements` are those whose ads were known at the time."""

    def __init__(self, queues: list[Queue], pilots: list[Pilot], elements: list[Element]) -> None:
        self._queues = queues
        self._pilots = pilots
        self._elements = {(each.site, each.ce): each for each in elements}
        self._job = cache(self._job_ad)
        self._resource = cache(self._resource_ad)

    def mismatch(self, queue: int, pilot: int) -> str:
        """Return who does not want the other; the empty string when both want each other."""
        wanted = self._queues[queue].requirements
        job, resource = self._job(queue), self._resource(pilot)
        if wanted and _evaluated(wanted, job, resource) is not True:
            return f"the job requires {wanted}"
        wanted = self._element(pilot).requirements
        if wanted and _evaluated(wanted, resource, job) is not True:
            return f"the element requires {wanted}"
        return ""

    def rank(self, queue: int, pilot: int) -> float:
        """Return how well a pilot's element likes a queue's jobs; what is no number counts as 0."""
        rank = self._element(pilot).rank
        found = _evaluated(rank, self._resource(pilot), self._job(queue)) if rank else 0
        return float(found) if type(found) in {int, float, bool} else 0.0

    def _element(self, pilot: int) -> Element:
        asked = self._pilots[pilot]
        return self._elements[asked.site, asked.ce]

    def _job_ad(self, number: int) -> Any:
        queue = self._queues[number]
        return _ad(
            queue.attributes
            | {
                "Owner": queue.owner,
                "OwnerGroup": queue.group,
                "VirtualOrganisation": VO,
                "Setup": "default",
                "JobType": queue.job_types[0],
                "CPUTime": queue.cpu_time,
                "NumberOfProcessors": 1,
                "Tags": list(queue.tags),
            }
        )

    def _resource_ad(self, number: int) -> Any:
        pilot = self._pilots[number]
        return _ad(
            self._element(number).attributes
            | {
                "Site": pilot.site,
                "GridCE": pilot.ce,
                "Setup": "default",
                "CPUTime": pilot.cpu_time,
                "NumberOfProcessors": 1,
                "Platforms": [pilot.platform],
                "Tags": list(pilot.tags),
            }
        )


def _ad(values: dict[str, Any]) -> Any:
    ad = classad2.ClassAd()
    for name, value in values.items():
        ad[name] = value
    return ad


def _evaluated(text: str, own: Any, other: Any) -> Any:
    return _tree(text).eval(own, other)


@cache
def _tree(text: str) -> Any:
    return classad2.ExprTree(text.replace("other.", "TARGET.").replace("my.", "MY."))
