"""Answers about brokered jobs: where they could run, what was predicted, where they were placed, and how true it was."""

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
    """A part of the time to delivery, or the whole: seconds, the interval that holds it in 90 of 100 cases, and the source."""

    part: Word
    """stage_in, waiting, execution, stage_out or delivery."""
    seconds: Seconds
    low: Seconds
    high: Seconds
    source: Word
    """reservation, queue-model, history, benchmark, resource, user, replicas or none."""
    model_seconds: Seconds = 0.0
    """The prediction before it was corrected by how wrong such predictions were."""


class RankedElement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A computing element that was considered for a job."""

    site: StoredName
    ce: StoredName
    rank: Count = 0
    """Its place, from 1; 0: it was rejected."""
    seconds: Seconds | None = None
    """The predicted time that the job's objective makes short; None for rejected elements."""
    low: Seconds | None = None
    high: Seconds | None = None
    parts: Annotated[tuple[PredictedPart, ...], msgspec.Meta(max_length=10)] = ()
    agreement_id: StoredName = ""
    agreement: Word = ""
    """The last known state of the agreement that it was asked for; empty: it was not asked."""
    start_at: Moment | None = None
    """The start of the reservation."""
    reasons: Reasons = ()
    """Why it was rejected, or what the ranking considered."""


class PlacementLine(msgspec.Struct, frozen=True, kw_only=True):
    """One time that the broker placed the job, and what became of it."""

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
    """A reservation that a site was asked for on behalf of the job."""

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
    """Answers ShowRanking: the record of a brokered job."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    state: Word
    phase: Word
    """Choosing, Deciding, Confirming, Placed or Over; empty: the broker has not begun."""
    reason: LongText
    """Why it is not placed now, as a code and a text; empty if it is."""
    reason_text: LongText
    rounds: Sequence
    """How often sites were asked for agreements."""
    ranked_at: datetime | None
    elements: Annotated[tuple[RankedElement, ...], Many]
    """The ranked elements, the best first, then the rejected ones."""
    placements: Annotated[tuple[PlacementLine, ...], Many]
    agreements: Annotated[tuple[AgreementLine, ...], Many]
    elements_total: Total
    """How many were considered; the rejected ones shown are bounded."""


class CalibrationLine(msgspec.Struct, frozen=True, kw_only=True):
    """How true the predictions of one site or predictor were."""

    site: StoredName
    """Empty: all sites."""
    part: Word
    """stage_in, waiting, execution, stage_out or delivery."""
    source: Word
    """The predictor; empty: all."""
    predictions: Total
    scored: Total
    """How many could be compared with what happened."""
    covered: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    """The share of scored ones whose 90 % interval holds the truth."""
    ratio: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None
    """The median of truth over prediction."""
    error_seconds: Seconds | None
    """The median of the absolute error."""


class Calibrations(msgspec.Struct, frozen=True, kw_only=True, tag="calibrations"):
    """Answers ListPredictions."""

    query_id: MessageId
    client: Client
    lines: Annotated[tuple[CalibrationLine, ...], Many]
