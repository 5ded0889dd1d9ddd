"""The topics on which pilots exchange their one-time secrets for tokens.

Pilots ask on one topic, through a gateway; services answer on the other. Key: the pilot. Questions carry no token, since the pilot
has none yet. A proof in each question shows that the sender has the secret. Answers are encrypted for the pilot.
"""

from typing import Annotated

import msgspec

from wms.bounds import Reason, Word
from wms.ids import PilotId

TOPIC = "wms.pilot.exchanges"
ANSWERS_TOPIC = "wms.pilot.credentials"

ExchangeId = Annotated[str, msgspec.Meta(min_length=32, max_length=32, pattern="^[0-9a-f]{32}$")]
"""The random id of an exchange, which the pilot chooses. A repeated exchange with the same id gets the same answer."""


class SecretExchange(msgspec.Struct, frozen=True, kw_only=True, tag="secret-exchange"):
    """A pilot asks for its token and its key in exchange for its one-time secret."""

    pilot_id: PilotId
    exchange_id: ExchangeId
    proof: Annotated[str, msgspec.Meta(max_length=100)]
    """The proof that the pilot has the secret: a MAC over the ids of the pilot and of the exchange (`wms.auth.pilot_secret`)."""


class SealedCredential(msgspec.Struct, frozen=True, kw_only=True, tag="sealed-credential"):
    """Answers SecretExchange: the pilot's token and key, which only the holder of the secret can decrypt."""

    pilot_id: PilotId
    exchange_id: ExchangeId
    sealed: Annotated[str, msgspec.Meta(max_length=32_768)]


class ExchangeRefusal(msgspec.Struct, frozen=True, kw_only=True, tag="exchange-refusal"):
    """Answers SecretExchange: the pilot gets no token, and the text says why."""

    pilot_id: PilotId
    exchange_id: ExchangeId
    code: Word
    text: Reason


ExchangeAnswer = SealedCredential | ExchangeRefusal
