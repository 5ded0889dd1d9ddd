"""Examples of messages about where brokered jobs could run, and how true predictions were."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.messages import queries, replies

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
JOB = 4_000_000_017
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}

RANKED = replies.RankedElement(
    site="glasgow",
    ce="ce01",
    rank=1,
    seconds=2_200.0,
    low=1_500.0,
    high=4_000.0,
    parts=(
        replies.PredictedPart(
            part="waiting", seconds=400.0, low=400.0, high=400.0, source="reservation", model_seconds=400.0
        ),
        replies.PredictedPart(
            part="execution",
            seconds=1_800.0,
            low=1_100.0,
            high=3_600.0,
            source="benchmark",
            model_seconds=1_700.0,
        ),
    ),
    agreement_id="4000000017-2-1-1",
    agreement="Confirmed",
    start_at=LATER,
    reasons=("it delivers first",),
)
REJECTED = replies.RankedElement(site="oslo", ce="grid", reasons=("memory: 4,000 MB wanted, 2,000 MB there",))

FULL: dict[str, msgspec.Struct] = {
    "show-ranking": queries.ShowRanking(**ASKED, job_id=JOB),
    "list-predictions": queries.ListPredictions(**ASKED, by="site"),
    "job-ranking": replies.JobRanking(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        phase="Placed",
        reason="",
        reason_text="",
        rounds=1,
        ranked_at=AT,
        elements=(RANKED, REJECTED),
        placements=(
            replies.PlacementLine(
                attempt=1,
                rank=1,
                site="glasgow",
                ce="ce01",
                dispatch="pilot",
                state="Sent",
                pilot_id="p-1",
                agreement_id="4000000017-2-1-1",
                reservation="wms-17",
                start_at=LATER,
                latest_start=LATER,
                reason="",
                reason_text="",
                created_at=AT,
                changed_at=AT,
            ),
        ),
        agreements=(
            replies.AgreementLine(
                agreement_id="4000000017-2-1-1",
                site="glasgow",
                ce="ce01",
                state="Confirmed",
                start_at=LATER,
                ends_at=LATER,
                reservation="wms-17",
                expires_at=LATER,
                reason="",
                reason_text="",
            ),
        ),
        elements_total=12,
    ),
    "calibrations": replies.Calibrations(
        **ASKED,
        lines=(
            replies.CalibrationLine(
                site="glasgow",
                part="waiting",
                source="history",
                predictions=200,
                scored=180,
                covered=0.9,
                ratio=1.1,
                error_seconds=12.5,
            ),
        ),
    ),
}
MINIMAL: dict[str, msgspec.Struct] = {
    "show-ranking": queries.ShowRanking(query_id="q", job_id=1),
    "list-predictions": queries.ListPredictions(query_id="q"),
    "job-ranking": replies.JobRanking(
        query_id="q",
        client="",
        job_id=1,
        state="Checking",
        phase="",
        reason="",
        reason_text="",
        rounds=0,
        ranked_at=None,
        elements=(),
        placements=(),
        agreements=(),
        elements_total=0,
    ),
    "calibrations": replies.Calibrations(query_id="q", client="", lines=()),
}
