"""Predictions in the database: kept with each placement, compared with what happened, and read as history by predictors."""

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
"""The parts of the time to delivery, and the whole."""
HISTORY_SECONDS = 30 * 86_400.0
"""The age in seconds of the oldest history that predictors read."""
CALIBRATIONS_LIMIT = 10_000
TRANSFERS_LIMIT = 200_000
"""The most transfers that are read at once."""


class NewPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction of one part of a new placement, in seconds, with its 90 % interval."""

    job_id: JobId
    part: Part
    place: CeId
    source: str
    seconds: float
    low: float
    high: float
    model_seconds: float
    """The prediction before it was corrected by how wrong such predictions were."""
    job_class: str = ""
    """The class of jobs whose run times tell of each other's."""
    size: int | None = None
    """The bytes of the files that are to come or go; None if unknown."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was measured at a place: how long it took, in seconds, and when it began."""

    place: CeId
    seconds: float
    at: datetime


class ClassSample(Sample, frozen=True, kw_only=True):
    """The run time of a job of a class."""

    job_class: str


class TransferSample(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer to or from a site."""

    site: str
    part: Part
    host: str
    """The storage at the other end; empty if it is not one host."""
    size: int
    """Bytes."""
    seconds: float
    at: datetime


async def insert(tx: Transaction, new: Sequence[NewPrediction]) -> None:
    """Keep predictions of placements that were ordered in this transaction."""
    if new:
        await tx.execute(SQL["insert"], *dense(_row(each) for each in new))


def _row(each: NewPrediction) -> tuple[Any, ...]:
    return (
        each.job_id, each.part, *each.place, each.source, each.job_class, each.size, each.seconds, each.low, each.high,
        each.model_seconds,
    )  # fmt: skip


async def score(tx: Transaction, limit: int) -> int:
    """Score the predictions of up to `limit` placements that are over; return the number of scored predictions."""
    return int(await tx.fetchval(SQL["score"], limit))


async def calibration(tx: Transaction, by: Literal["site", "predictor", "both"]) -> list[asyncpg.Record]:
    """Return how true the predictions were: site, part, source, predictions, scored, covered, ratio and error_seconds a row."""
    return await tx.fetch(SQL["calibration"], by, CALIBRATIONS_LIMIT)


async def waits(tx: Transaction, each: int) -> list[Sample]:
    """Return the last `each` waits of pilots at every element, latest first."""
    rows = await tx.fetch(SQL["waits"], HISTORY_SECONDS, each)
    return [_sample(row) for row in rows]


def _sample(row: asyncpg.Record) -> Sample:
    return Sample(place=CeId(row["site"], row["ce"]), seconds=row["seconds"], at=row["at"])


async def run_times(tx: Transaction, classes: Collection[str], each: int) -> list[ClassSample]:
    """Return the last `each` run times of jobs of every class, latest first."""
    rows = await tx.fetch(SQL["run_times"], sorted(classes), each)
    return [
        ClassSample(
            job_class=row["class"], place=CeId(row["site"], row["ce"]), seconds=row["seconds"], at=row["at"]
        )
        for row in rows
    ]


async def runs_there(tx: Transaction, each: int) -> dict[CeId, list[float]]:
    """Return the last `each` run times of placed jobs at every element, in seconds, latest first."""
    found: dict[CeId, list[float]] = {}
    for row in await tx.fetch(SQL["runs_there"], HISTORY_SECONDS, each):
        found.setdefault(CeId(row["site"], row["ce"]), []).append(row["seconds"])
    return found


async def corrections(tx: Transaction, each: int, unfelt: float) -> list[asyncpg.Record]:
    """Return how predictors erred, by the last `each` scored predictions: site ("": all), part, source, count, quantiles a row.

    The quantiles (5, 50, 95 %) are of truth over prediction, each counted from `-unfelt` seconds on.
    """
    return await tx.fetch(SQL["corrections"], HISTORY_SECONDS, each, unfelt)


async def transfers(tx: Transaction, each: int) -> list[TransferSample]:
    """Return the last `each` transfers between every site and storage host, in both directions, latest first."""
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
    """Delete up to `limit` predictions that were made more than `age` seconds ago; return the number of deleted ones."""
    return await tx.execute(SQL["forget"], age, limit)
