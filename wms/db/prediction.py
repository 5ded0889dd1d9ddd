"""Predictions of how long placed jobs take, in the database. They are stored with each placement, and later compared with the actual times.

Predictors read the measured times to predict those of other jobs.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal

import asyncpg
import msgspec

from wms.db.columns import dense
from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import CeId, JobId

SQL = load(__file__)

Part = Literal["stage_in", "waiting", "execution", "stage_out", "delivery"]
"""What is predicted: a part of the time from a job's placement to its end, or that whole time (delivery)."""
HISTORY_SECONDS = 30 * 86_400.0
"""The age in seconds up to which predictors read measured times."""
CALIBRATIONS_LIMIT = 10_000
TRANSFERS_LIMIT = 200_000
"""How many transfers `transfers` returns at most."""


class NewPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction, in seconds, of one part of a new placement's time, with the bounds of its 90 % interval."""

    job_id: JobId
    part: Part
    place: CeId
    source: str
    seconds: float
    low: float
    high: float
    model_seconds: float
    """The predicted seconds before the correction by the errors of earlier predictions."""
    job_class: str = ""
    """The class of similar jobs, whose run times the prediction uses; empty if none."""
    size: int | None = None
    """The bytes of the files to be transferred; None if unknown."""


class MeasuredDuration(msgspec.Struct, frozen=True, kw_only=True):
    """One duration measured at a computing element, in seconds, and when it began."""

    place: CeId
    seconds: float
    at: datetime


class ClassSample(MeasuredDuration, frozen=True, kw_only=True):
    """The run time of one job, in seconds, with the class of similar jobs that it belongs to."""

    job_class: str


class TransferSample(msgspec.Struct, frozen=True, kw_only=True):
    """One measured transfer of files to or from a site."""

    site: str
    part: Part
    host: str
    """The storage host at the other end; empty if there are several."""
    size: int
    """How many bytes were transferred."""
    seconds: float
    at: datetime


async def insert(tx: Transaction, new: Sequence[NewPrediction]) -> None:
    """Store predictions for placements that were ordered in this transaction."""
    if new:
        await tx.execute(SQL["insert"], *dense(_row(each) for each in new))


def _row(each: NewPrediction) -> tuple[Any, ...]:
    return (
        each.job_id, each.part, *each.place, each.source, each.job_class, each.size, each.seconds, each.low, each.high,
        each.model_seconds,
    )  # fmt: skip


async def score(tx: Transaction, limit: int) -> int:
    """Compare the predictions of up to `limit` ended placements with the actual times. Return the number of predictions compared."""
    return int(await tx.fetchval(SQL["score"], limit))


async def calibration(
    tx: Transaction, by: Literal["site", "predictor", "both"], unfelt: float
) -> list[asyncpg.Record]:
    """Return rows on the accuracy of predictions, for each site, predictor or pair of them (`by`), and each part of the time.

    A row has site, part, source (the predictor), the number of predictions, scored (how many could be compared), covered (the share within
    the predicted interval), ratio (the median of actual over predicted time, with `unfelt` seconds added to both as in `corrections`) and error_seconds (the median absolute error).
    """
    return await tx.fetch(SQL["calibration"], by, CALIBRATIONS_LIMIT, unfelt)


async def waits(tx: Transaction, each: int) -> list[MeasuredDuration]:
    """Return how many seconds the last `each` pilots of every computing element waited in its batch queue, latest first."""
    rows = await tx.fetch(SQL["waits"], HISTORY_SECONDS, each)
    return [_sample(row) for row in rows]


def _sample(row: asyncpg.Record) -> MeasuredDuration:
    return MeasuredDuration(place=CeId(row["site"], row["ce"]), seconds=row["seconds"], at=row["at"])


async def run_times(tx: Transaction, classes: Collection[str], each: int) -> list[ClassSample]:
    """Return the last `each` run times of jobs of each of these classes, at any computing element, latest first."""
    rows = await tx.fetch(SQL["run_times"], sorted(classes), each)
    return [
        ClassSample(
            job_class=row["class"], place=CeId(row["site"], row["ce"]), seconds=row["seconds"], at=row["at"]
        )
        for row in rows
    ]


async def runs_there(tx: Transaction, each: int) -> dict[CeId, list[float]]:
    """Return the last `each` run times of placed jobs at every computing element, in seconds, latest first."""
    found: dict[CeId, list[float]] = {}
    for row in await tx.fetch(SQL["runs_there"], HISTORY_SECONDS, each):
        found.setdefault(CeId(row["site"], row["ce"]), []).append(row["seconds"])
    return found


async def corrections(tx: Transaction, each: int, unfelt: float) -> list[asyncpg.Record]:
    """Return rows on the errors of the last `each` compared predictions, by site, part and source (the predictor).

    A row has site ("" for all), part, source, count and quantiles. The quantiles (5, 50, 95 %) are of actual over predicted time. `unfelt`
    seconds are added to both times before, so that errors of this size count little.
    """
    return await tx.fetch(SQL["corrections"], HISTORY_SECONDS, each, unfelt)


async def transfers(tx: Transaction, each: int) -> list[TransferSample]:
    """Return the last `each` transfers between every site and storage host, for each direction, latest first."""
    rows = await tx.fetch(SQL["transfers"], HISTORY_SECONDS, each, TRANSFERS_LIMIT)
    return [
        TransferSample(
            site=row["site"],
            part=row["part"],
            host=row["host"],
            size=row["bytes"],
            seconds=row["seconds"],
            at=row["at"],
        )
        for row in rows
    ]


async def forget(tx: Transaction, age: float, limit: int) -> int:
    """Delete up to `limit` predictions made more than `age` seconds ago; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
