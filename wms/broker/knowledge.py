"""What the broker knows besides the ads: what was measured before, granted reservations, sizes, and how wrong it was so far."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from wms.broker.prediction import Part, Source
from wms.ids import CeId

LEAST_SCORED: Final = 20
"""The number of scored predictions from which quantiles of 5 % and 95 % can be told."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """How long a job of a class ran, in seconds, and where."""

    place: CeId
    seconds: float


class MeasuredTransfer(Struct, frozen=True, kw_only=True):
    """A transfer between a storage host and a site. `host` empty: some host."""

    size: int
    """Bytes."""
    seconds: float
    host: str = ""


class GrantedStart(Struct, frozen=True, kw_only=True):
    """A reservation that a site granted to the job, with its exact start."""

    start_at: datetime
    ends_at: datetime | None = None
    agreement_id: str = ""


class Correction(Struct, frozen=True, kw_only=True):
    """How a predictor erred at a site: quantiles of truth over prediction, of `count` scored predictions.

    Both are counted from `-UNFELT` seconds on, so that waits of no time can be compared.
    """

    low: float
    """The 5 % quantile."""
    median: float
    high: float
    """The 95 % quantile."""
    count: int


class Knowledge(Struct, frozen=True, kw_only=True):
    """All that predictors learn from. Each list is of the latest measurements, latest first; all times are seconds.

    Everything may be missing: predictors then say less, and say so by their source and a wide interval.
    """

    reservations: Mapping[CeId, GrantedStart] = {}
    """The reservations granted to this job."""
    waits: Mapping[CeId, Sequence[float]] = {}
    """How long jobs, or pilots, waited at an element before they started."""
    still_waiting: Mapping[CeId, Sequence[float]] = {}
    """How long the broker's jobs that have not started have waited at an element so far: they stand in its queue, whatever it says."""
    placed_since: Mapping[CeId, int] = {}
    """How many jobs the broker has placed at an element since its load was counted: they are not in it."""
    runs_there: Mapping[CeId, Sequence[float]] = {}
    """How long jobs of any kind ran at an element."""
    class_runs: Mapping[str, Sequence[MeasuredRun]] = {}
    """How long jobs of a class ran, wherever."""
    arriving: Mapping[str, Sequence[MeasuredTransfer]] = {}
    """Transfers of inputs to a site, by its name."""
    leaving: Mapping[str, Sequence[MeasuredTransfer]] = {}
    """Transfers of outputs from a site, by its name."""
    sizes: Mapping[str, int] = {}
    """Bytes of files by URL, as a resolver or a storage server told."""
    replicas: Mapping[str, tuple[str, ...]] = {}
    """The URLs of a file by its logical name (`lfn:...`), as a resolver told."""
    replica_sites: Mapping[str, frozenset[str]] = {}
    """The sites that hold a file, by its logical name (`lfn:...`), as a resolver told."""
    corrections: Mapping[tuple[str, Part, Source], Correction] = {}
    """How predictors erred: by site, part and source. An empty site stands for all sites together."""

    def correction(self, site: str, part: Part, source: Source) -> Correction | None:
        """Return how a predictor errs at a site; if too little is known of it there, at all sites; None if too little is known."""
        for where in (site, ""):
            found = self.corrections.get((where, part, source))
            if found is not None and found.count >= LEAST_SCORED:
                return found
        return None
