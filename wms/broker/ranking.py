"""The ranking of candidates: where the job is delivered, or started, first, and why the others come later or not at all."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from wms.broker.candidate import Candidate
from wms.broker.filter import RejectedCandidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Knowledge
from wms.broker.time_to_delivery import DeliveryTime


class RankedCandidate(Struct, frozen=True, kw_only=True):
    """A candidate where the job can run; `rank` 1 is the best."""

    rank: int
    candidate: Candidate
    time: DeliveryTime
    reason: str
    """Why it stands here, in a sentence."""


class Ranking(Struct, frozen=True, kw_only=True):
    """All candidates of a job: the ranked ones, the best first, and the rejected ones, by site and name."""

    ranked: tuple[RankedCandidate, ...]
    rejected: tuple[RejectedCandidate, ...]

    @property
    def best(self) -> RankedCandidate | None:
        """The best candidate; None if the job fits nowhere."""
        return self.ranked[0] if self.ranked else None


def rank(job: JobToPlace, candidates: Sequence[Candidate], knowledge: Knowledge, now: datetime) -> Ranking:
    """Return the ranking of candidates for a job by its objective.

    Equal times stand in the order of the intervals' upper ends, and then of site and name. The same input has the same ranking.
    """
    raise NotImplementedError
