"""Examples of the messages by which a pilot's one-time secret is exchanged."""

import msgspec

from wms.ids import PilotId
from wms.messages import pilot_exchange

PILOT = PilotId("p-6f1d2c3b4a596877")
EXCHANGE = "0123456789abcdef0123456789abcdef"

FULL: dict[str, msgspec.Struct] = {
    "secret-exchange": pilot_exchange.SecretExchange(
        pilot_id=PILOT, exchange_id=EXCHANGE, proof="uGj2n1mZQ0c9VQm1pUq2l5w6o0jvE3nq2uT9b8sWm1E="
    ),
    "sealed-credential": pilot_exchange.SealedCredential(
        pilot_id=PILOT, exchange_id=EXCHANGE, sealed="c2VhbGVk"
    ),
    "exchange-refusal": pilot_exchange.ExchangeRefusal(
        pilot_id=PILOT,
        exchange_id=EXCHANGE,
        code="SECRET_USED",
        text="the secret was exchanged before",
    ),
}
MINIMAL: dict[str, msgspec.Struct] = {
    "secret-exchange": pilot_exchange.SecretExchange(pilot_id=PILOT, exchange_id=EXCHANGE, proof=""),
    "sealed-credential": pilot_exchange.SealedCredential(pilot_id=PILOT, exchange_id=EXCHANGE, sealed=""),
    "exchange-refusal": pilot_exchange.ExchangeRefusal(
        pilot_id=PILOT, exchange_id=EXCHANGE, code="SECRET_REFUSED", text=""
    ),
}
