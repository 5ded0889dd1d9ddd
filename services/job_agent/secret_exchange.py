"""Exchanges the pilot's one-time secret for its token and key, once, over the gateway."""

import asyncio
import random
import secrets
from typing import Final

import msgspec
import structlog

from services.job_agent.gateway_connection import GatewayConnection
from wms.auth.orders import PilotCredential
from wms.auth.pilot_secret import PilotSecret
from wms.backoff import delays
from wms.errors import Unavailable
from wms.messages.pilot_exchange import SealedCredential
from wms.runtime.pilot_config import GatewayAccess

log = structlog.get_logger()

ANSWER_SECONDS: Final = 30.0
EXCHANGE_SECONDS: Final = 900.0
"""Seconds for which a pilot tries to exchange its secret while no gateway or service answers. After that it ends."""


async def exchanged(access: GatewayAccess, secret: PilotSecret) -> PilotCredential:
    """Exchange the pilot's one-time secret at the gateway and return its credential: token and key.

    While there is no answer it tries again, for up to EXCHANGE_SECONDS; then it raises Unavailable. Raise Rejected if the
    exchange is refused, for example because the secret was used before.
    """
    connection = GatewayConnection(access, secret.pilot_id)
    try:
        async with asyncio.timeout(EXCHANGE_SECONDS):
            return await _patiently(connection, secret)
    except TimeoutError:
        raise Unavailable(f"the secret was not exchanged within {EXCHANGE_SECONDS:g} s") from None
    finally:
        await connection.close()


async def _patiently(connection: GatewayConnection, secret: PilotSecret) -> PilotCredential:
    # One id for all attempts: an answer that was lost is given again.
    exchange_id = secrets.token_hex(16)
    raw = msgspec.json.encode({"exchange_id": exchange_id, "proof": secret.proof(exchange_id)})
    for pause in delays(0.5, 10.0, 2.0, random.SystemRandom().random):
        try:
            read = await connection.post("/credential", raw, ANSWER_SECONDS)
        except Unavailable as error:
            log.warning("secret not exchanged yet", error=error.message)
            await asyncio.sleep(pause)
            continue
        answer = msgspec.json.decode(read, type=SealedCredential)
        return PilotCredential.parse(secret.opened(exchange_id, answer.sealed))
    raise AssertionError("delays are endless")
