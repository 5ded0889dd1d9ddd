"""A pilot exchanges its secret also when its gateway comes up late, and knows when nobody ever answers."""

import asyncio
from pathlib import Path

import pytest

from services.job_agent import secret_exchange
from services.job_agent.secret_exchange import exchanged
from tests.services.gateway.test_pilot_credentials import CREDENTIAL, SECRET, Services, services
from tests.services.job_agent.links import pilots_gateway
from wms.embedded.kafka_broker import KafkaBroker
from wms.embedded.process import free_port
from wms.errors import Unavailable
from wms.runtime.pilot_config import GatewayAccess

__all__ = ["services"]


async def test_a_gateway_that_is_not_there_yet_is_waited_for(
    broker: KafkaBroker, tmp_path: Path, services: Services
) -> None:
    port = free_port()
    waiting = asyncio.create_task(exchanged(GatewayAccess(url=f"http://127.0.0.1:{port}"), SECRET))
    async with pilots_gateway(broker, tmp_path, port=port):
        assert await waiting == CREDENTIAL
    assert len({each.exchange_id for each in services.asked}) == 1


async def test_a_pilot_whose_gateway_never_comes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_exchange, "EXCHANGE_SECONDS", 0.5)
    with pytest.raises(Unavailable, match="not exchanged within"):
        await exchanged(GatewayAccess(url=f"http://127.0.0.1:{free_port()}"), SECRET)
