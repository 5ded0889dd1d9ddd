"""`POST /pilots/{pilot_id}/credential`: exchanges a pilot's one-time secret for its token and key. The gateway can read neither."""

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing
from services.gateway.operation import Operation
from services.gateway.service_requests import Desk, json_response
from services.gateway.site_routes import OnePilot
from wms.errors import Rejected
from wms.ids import PilotId
from wms.messages.pilot_exchange import ExchangeId, ExchangeRefusal, SealedCredential, SecretExchange

BODY_LIMIT: Final = 2_000


class SecretProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an exchange: its id, and the proof that the pilot knows its one-time secret. The proof does not reveal the secret."""

    exchange_id: ExchangeId
    proof: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


EXCHANGE: Final = Operation(
    method="POST",
    path="/pilots/{pilot_id}/credential",
    summary="Exchange your pilot's one-time secret, by a proof of it, for its token and key, encrypted for the pilot",
    parameters=OnePilot,
    body=SecretProof,
    answer=SealedCredential,
    is_public=True,
)


class PilotCredentials:
    """The endpoint of exchanges of pilots' secrets. It needs no token, since the pilot has none yet."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the pilot's token and key, encrypted for the pilot.

        Raise Rejected if a service refuses the exchange, Unavailable if none answers in time, and TooMany if too many are pending.
        """
        self._desk.authentication.admit_secret(request)
        given = request_parsing.parameters(request, OnePilot)
        settings = self._desk.settings
        proof: SecretProof = await request_parsing.decoded(
            request, SecretProof, BODY_LIMIT, settings.read_seconds
        )
        exchange = SecretExchange(
            pilot_id=PilotId(given.pilot_id), exchange_id=proof.exchange_id, proof=proof.proof
        )
        answer = await self._desk.pilots.exchanges.ask(exchange, settings.answer_seconds)
        if isinstance(answer, ExchangeRefusal):
            raise Rejected(answer.code, answer.text)
        return json_response(answer)
