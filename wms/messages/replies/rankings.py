"""Answers about jobs that the resource broker places: where they could run, the predicted times, and the actual times."""

from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import (
    Client,
    Count,
    JobNumber,
    LongText,
    MessageId,
    Moment,
    Seconds,
    Sequence,
    StoredName,
    Total,
    Word,
)
from wms.messages.replies.bounds import Many

Reasons: TypeAlias = Annotated[tuple[LongText, ...], msgspec.Meta(max_length=100)]


class PredictedPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The predicted seconds until a job's results are delivered, or a part of this time.

    The actual time lies between `low` and `high` in 90 of 100 cases.
    """

    part: Word
    """The part of the time: stage_in, waiting, execution, stage_out, or delivery for the whole."""
    seconds: Seconds
    low: Seconds
    high: Seconds
    source: Word
    """How the time was predicted: reservation, queue-model, history, benchmark, resource, user, replicas or none."""
    model_seconds: Seconds = 0.0
    """The predicted seconds before the correction by the errors of earlier predictions."""


class RankedElement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A computing element that the resource broker considered for a job."""

    site: StoredName
    ce: StoredName
    rank: Count = 0
    """The computing element's place in the ranking, from 1 for the best. 0 if it was rejected."""
    seconds: Seconds | None = None
    """The predicted seconds by which the ranking is ordered, depending on what the job asks to be early. None if it was rejected.
    """
    low: Seconds | None = None
    high: Seconds | None = None
    parts: Annotated[tuple[PredictedPart, ...], msgspec.Meta(max_length=10)] = ()
    agreement_id: StoredName = ""
    agreement: Word = ""
    """The last known state of the reservation that was requested of the site. Empty if none was requested."""
    start_at: Moment | None = None
    """The start of the reservation; None if there is none."""
    reasons: Reasons = ()
    """Why the computing element was rejected, or what the ranking took into account."""
    hosts: Annotated[tuple[StoredName, ...], msgspec.Meta(max_length=100)] = ()
    """The storage hosts of the inputs in the order in which replicas are fetched there. Empty if no input has several."""


class PlacementLine(msgspec.Struct, frozen=True, kw_only=True):
    """One placement of a job: the computing element that the resource broker chose, and the result of the placement."""

    attempt: Count
    rank: Count
    site: StoredName
    ce: StoredName
    dispatch: Word
    state: Word
    pilot_id: StoredName | None
    agreement_id: StoredName | None
    reservation: StoredName
    start_at: datetime | None
    latest_start: datetime | None
    reason: LongText
    reason_text: LongText
    created_at: datetime
    changed_at: datetime


class AgreementLine(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation that the resource broker requested of a site for this job."""

    agreement_id: StoredName
    site: StoredName
    ce: StoredName
    state: Word
    start_at: datetime | None
    ends_at: datetime | None
    reservation: StoredName
    expires_at: datetime | None
    reason: LongText
    reason_text: LongText


class JobRanking(msgspec.Struct, frozen=True, kw_only=True, tag="job-ranking"):
    """Answers ShowRanking: the phase of the resource broker's work on a job, the ranked computing elements, and the placements."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    state: Word
    phase: Word
    """The phase of the broker's work: Choosing, Deciding, Confirming, Placed or Over. Empty if it has not begun."""
    reason: LongText
    """The code of the reason why the job is not placed now. Empty if it is placed."""
    reason_text: LongText
    rounds: Sequence
    """How many times the broker requested reservations of sites for the job."""
    ranked_at: datetime | None
    elements: Annotated[tuple[RankedElement, ...], Many]
    """The ranked computing elements, the best first, and after them the rejected ones."""
    placements: Annotated[tuple[PlacementLine, ...], Many]
    agreements: Annotated[tuple[AgreementLine, ...], Many]
    elements_total: Total
    """How many computing elements were considered. Only some of the rejected ones are listed."""


class CalibrationLine(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of the resource broker's predictions of times, for one site, one predictor, or both."""

    site: StoredName
    """The site; empty for all sites together."""
    part: Word
    """The part of the time that was predicted: stage_in, waiting, execution, stage_out, or delivery for the whole."""
    source: Word
    """The predictor; empty for all predictors together."""
    predictions: Total
    scored: Total
    """How many of the predictions could be compared with the actual times."""
    covered: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    """The share of compared predictions, from 0 to 1, whose 90 % interval contained the actual time. None if none was compared."""
    ratio: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None
    """The median of actual time divided by predicted time, with 30 s added to both. None if no prediction was compared."""
    error_seconds: Seconds | None
    """The median of the absolute error in seconds. None if no prediction was compared."""


class Calibrations(msgspec.Struct, frozen=True, kw_only=True, tag="calibrations"):
    """Answers ListPredictions: one line for each site, predictor or pair of them, and part of the time."""

    query_id: MessageId
    client: Client
    lines: Annotated[tuple[CalibrationLine, ...], Many]
