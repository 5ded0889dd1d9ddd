"""What predictors use besides the ads: past measurements, granted reservations, file sizes, and the errors of past predictions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from wms.broker.prediction import Part, Source
from wms.ids import CeId

LEAST_SCORED: Final = 20
"""The least number of predictions from which a correction is learned. Fewer do not show the 5 % and 95 % quantiles."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """The run time in seconds of one job of a class, and the computing element where it ran."""

    place: CeId
    seconds: float


class MeasuredWait(Struct, frozen=True, kw_only=True):
    """How long one job or pilot waited at a computing element before it started, in seconds, and when it was submitted (`at`)."""

    seconds: float
    at: datetime


class MeasuredTransfer(Struct, frozen=True, kw_only=True):
    """The size and duration of one file transfer between a storage host and a site. An empty `host` means that it is unknown."""

    size: int
    """The size of the file in bytes."""
    seconds: float
    host: str = ""


class GrantedStart(Struct, frozen=True, kw_only=True):
    """The exact start of a reservation that a site granted for the job."""

    start_at: datetime
    ends_at: datetime | None = None
    agreement_id: str = ""


class Correction(Struct, frozen=True, kw_only=True):
    """The errors of one predictor: quantiles of the ratio of true time to predicted time, from `count` past predictions.

    `UNFELT` seconds are added to both times before they are divided, so that times near 0 s have sensible ratios.
    """

    low: float
    """The 5 % quantile of the ratio of true time to predicted time."""
    median: float
    high: float
    """The 95 % quantile of the ratio of true time to predicted time."""
    count: int


class Knowledge(Struct, frozen=True, kw_only=True):
    """All that predictors learn from. Each list holds the latest measurements, latest first; all times are in seconds.

    Any part may be empty. Predictions then have another `source` and a wider interval.
    """

    reservations: Mapping[CeId, GrantedStart] = {}
    """The reservations granted for the job that is being placed, by computing element."""
    waits: Mapping[CeId, Sequence[MeasuredWait]] = {}
    """How long earlier jobs or pilots waited at each computing element before they started."""
    still_waiting: Mapping[CeId, Sequence[float]] = {}
    """Waiting times so far, in seconds, of the jobs that the broker placed at each computing element and that have not started."""
    placed_since: Mapping[CeId, int] = {}
    """How many jobs the broker placed at each computing element after its load was counted, so that its ad lacks them."""
    runs_there: Mapping[CeId, Sequence[float]] = {}
    """The run times in seconds of jobs of any class at each computing element."""
    class_runs: Mapping[str, Sequence[MeasuredRun]] = {}
    """The run times of jobs of each class, by the class's name, at all computing elements."""
    arriving: Mapping[str, Sequence[MeasuredTransfer]] = {}
    """Measured transfers of input files to each site, by the site's name."""
    leaving: Mapping[str, Sequence[MeasuredTransfer]] = {}
    """Measured transfers of output files from each site, by the site's name."""
    sizes: Mapping[str, int] = {}
    """Sizes of files in bytes, by URL, as a replica catalogue or a storage server stated."""
    replicas: Mapping[str, tuple[str, ...]] = {}
    """The replicas (URLs) of each file, by its logical name (`lfn:...`), as a replica catalogue stated."""
    replica_sites: Mapping[str, frozenset[str]] = {}
    """The names of the sites that hold each file, by its logical name (`lfn:...`), as a replica catalogue stated."""
    corrections: Mapping[tuple[str, Part, Source], Correction] = {}
    """The errors of predictors, by site, part and source. An empty site stands for all sites together."""

    def correction(self, site: str, part: Part, source: Source) -> Correction | None:
        """Return the errors of a predictor for a part of the time to delivery at a site.

        With fewer than `LEAST_SCORED` predictions at the site, those over all sites are returned; with too few there as well,
        None.
        """
        for where in (site, ""):
            found = self.corrections.get((where, part, source))
            if found is not None and found.count >= LEAST_SCORED:
                return found
        return None
