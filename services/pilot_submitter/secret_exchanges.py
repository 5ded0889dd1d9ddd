"""Exchanges the one-time secrets of pilots for their tokens and keys, and refuses every further exchange of a secret.

A pilot chooses an id for its exchange. If it repeats the exchange under this id in time, it is answered again, as the answer
may have been lost. An exchange under another id shows that somebody copied the secret. As nobody knows who came first, the
pilot or the thief, that exchange is refused and recorded in the audit trail. The token of the first exchange is revoked, and
the pilot counts as ended, so that a new one is sent.
"""

import msgspec
import structlog
from msgspec.structs import replace

from services.pilot_submitter.pilot_factory import NO_OWNER, PilotFactory
from wms.auth.orders import OrderKeys
from wms.auth.pilot_secret import PilotSecret
from wms.bus.delivery import Delivery
from wms.db import audit_record, pilot_secret
from wms.db.audit_record import AuditEntry
from wms.db.database import Transaction
from wms.db.pilot_secret import StoredSecret
from wms.errors import Rejected
from wms.ids import Identity, PilotId
from wms.messages.pilot_exchange import (
    ANSWERS_TOPIC,
    ExchangeRefusal,
    SealedCredential,
    SecretExchange,
)

log = structlog.get_logger()

AGAIN_SECONDS = 600.0
"""Seconds within which an exchange is answered again under its id. After that a repetition counts as a misuse of the secret."""
ACTION = "exchange-secret"
"""The name of the action under which refused exchanges stand in the audit trail."""
USED = "SECRET_USED"
COPIED = "its one-time secret was used twice: somebody has copied it"
"""The stored reason for which a pilot is revoked whose secret was used twice."""


class SecretExchanges:
    """Answers pilots that exchange their one-time secrets.

    `orders` derives the secrets, and `maker` makes the tokens and keys that pilots get for them.
    """

    def __init__(self, maker: PilotFactory, orders: OrderKeys) -> None:
        self._maker = maker
        self._orders = orders

    async def handle(self, tx: Transaction, batch: list[Delivery[SecretExchange]]) -> None:
        """Answer a batch of exchanges in this transaction: send each pilot its token and key, or a refusal.

        Of each secret, the first exchange with a valid proof is granted.
        """
        stored = await pilot_secret.lock(tx, [each.message.pilot_id for each in batch])
        granted: dict[PilotId, str] = {}
        copied: set[PilotId] = set()
        for asked in (each.message for each in batch):
            try:
                self._grant(tx, asked, stored)
                granted[asked.pilot_id] = asked.exchange_id
            except Rejected as fault:
                await _refuse(tx, asked, stored, fault)
                copied |= {asked.pilot_id} if fault.code == USED else set()
        seconds = self._maker.token_seconds
        await pilot_secret.exchanged(tx, granted, seconds)
        await pilot_secret.revoke_copied(
            tx, sorted(copied), reason=COPIED, token_seconds=seconds, by=NO_OWNER
        )

    def _grant(self, tx: Transaction, asked: SecretExchange, stored: dict[PilotId, StoredSecret]) -> None:
        """Send a pilot its token and key, encrypted by its secret. Raise Rejected with the reason if it gets none.

        `stored` has the stored secrets by pilot; that of this pilot is marked as used.
        """
        known = stored.get(asked.pilot_id)
        secret = self._verified(asked, known)
        assert known is not None
        stored[asked.pilot_id] = replace(known, exchange_id=asked.exchange_id, exchanged_ago=0.0)
        sealed = secret.seal(asked.exchange_id, self._maker.credential(known.pilot).text)
        answer = SealedCredential(pilot_id=asked.pilot_id, exchange_id=asked.exchange_id, sealed=sealed)
        tx.reply(ANSWERS_TOPIC, asked.pilot_id, answer)

    def _verified(self, asked: SecretExchange, known: StoredSecret | None) -> PilotSecret:
        """Return the pilot's secret if its exchange may be granted; raise Rejected with the reason if not.

        `known` is the stored secret of the pilot; None if there is none.
        """
        secrets = self._orders.secrets_of(asked.pilot_id) if known else ()
        secret = next((each for each in secrets if known and each.digest == known.digest), None)
        if known is None or secret is None or not secret.is_proof(asked.proof, asked.exchange_id):
            # One answer for all of them: it does not tell which pilots there are.
            raise Rejected("SECRET_REFUSED", "no pilot was sent with this secret")
        if fault := _fault(asked, known):
            raise fault
        return secret


async def _refuse(
    tx: Transaction, asked: SecretExchange, stored: dict[PilotId, StoredSecret], fault: Rejected
) -> None:
    log.warning("exchange refused", pilot=asked.pilot_id, code=fault.code)
    known = stored.get(asked.pilot_id)
    if known is not None and fault.code == USED:
        stored[asked.pilot_id] = known = replace(known, refusals=known.refusals + 1)
        await _record(tx, asked, known, fault)
    refusal = ExchangeRefusal(
        pilot_id=asked.pilot_id, exchange_id=asked.exchange_id, code=fault.code, text=fault.message
    )
    tx.reply(ANSWERS_TOPIC, asked.pilot_id, refusal)


def _fault(asked: SecretExchange, known: StoredSecret) -> Rejected | None:
    """Return why an exchange with a valid proof is refused: the stored secret is used or expired, or the pilot has ended.

    Return None if it may be granted.
    """
    if known.exchange_id is not None and not _is_repeated(asked, known):
        return Rejected(USED, "the secret was exchanged before: the pilot is revoked", "send a new pilot")
    if known.ended:
        return Rejected("PILOT_ENDED", "the pilot has ended")
    if known.exchange_id is None and known.expired:
        return Rejected("SECRET_EXPIRED", "the secret has expired", "send a new pilot")
    return None


def _is_repeated(asked: SecretExchange, known: StoredSecret) -> bool:
    """Return whether the exchange has the id of the one that used the secret, at most `AGAIN_SECONDS` ago."""
    return known.exchange_id == asked.exchange_id and (known.exchanged_ago or 0.0) <= AGAIN_SECONDS


async def _record(tx: Transaction, asked: SecretExchange, known: StoredSecret, fault: Rejected) -> None:
    """Count a refused exchange. Write the first, second, fourth, eighth, ... of a pilot into the audit trail, which so cannot be flooded."""
    await pilot_secret.refused(tx, [asked.pilot_id])
    if known.refusals.bit_count() > 1:
        return
    subject = {"pilot": asked.pilot_id, "ce": known.pilot.ce, "refusals": known.refusals}
    who = Identity(known.pilot.owner or NO_OWNER, known.pilot.owner_group or "pilot", known.pilot.vo)
    entry = AuditEntry(
        command_id=asked.exchange_id,
        action=ACTION,
        subject=msgspec.json.encode(subject).decode(),
        site=known.pilot.site,
        code=fault.code,
        answer=fault.message,
    )
    await audit_record.record(tx, who, "", entry)
