"""Processors that the tags of a queue ask for, as the database reads them."""

import msgspec
import pytest

from wms.db import usage_hour
from wms.db.database import Transaction


@pytest.mark.parametrize(
    ("requirements", "processors"),
    [
        ({}, 1),
        ({"tags": []}, 1),
        ({"tags": ["4Processors", "MultiProcessor"]}, 4),
        ({"tags": ["2processors", "16PROCESSORS"]}, 16),
        ({"tags": ["0Processors", "x4Processors", "12345Processors"]}, 1),
        ({"tags": "4Processors"}, 1),
    ],
)
async def test_processors_are_those_of_the_largest_tag(
    tx: Transaction, requirements: dict[str, object], processors: int
) -> None:
    text = msgspec.json.encode(requirements).decode()
    assert await tx.fetchval("select processors_of($1::text::jsonb)", text) == processors


async def test_an_hour_that_is_not_over_stays_open(tx: Transaction) -> None:
    await tx.execute("update usage_rollup set closed_until = date_trunc('hour', now(), 'UTC')")
    assert not await usage_hour.close(tx)
