"""Killed between commit, send and offset, a service loses nothing and does nothing twice once it is started again."""

import signal
from pathlib import Path

import pytest

from tests.services.runtime.counting import Counting
from wms import faultpoint
from wms.embedded.kafka_broker import KafkaBroker

NUMBERS = range(600)


@pytest.mark.parametrize("point", sorted(faultpoint.BUS_POINTS))
async def test_killed_at(point: str, tmp_path: Path, database: str) -> None:
    async with (
        KafkaBroker(tmp_path / "broker") as broker,
        Counting(tmp_path, database, broker, idempotent=False).open() as counting,
    ):
        await counting.tell(NUMBERS)
        doomed = await counting.start(WMS_FAULTPOINT=f"{point}:2")
        assert await doomed.wait() == -signal.SIGKILL
        assert await counting.effects() != list(NUMBERS)
        await counting.start()

        assert await counting.took_effect(NUMBERS) == list(NUMBERS)
        await counting.outbox_is_empty()
        assert set(await counting.passed_on()) == set(NUMBERS)
