"""One-time secrets of pilots in the database: the hash of each, and the exchange in which it was used."""

from collections.abc import Mapping, Sequence

import msgspec

from wms.db.database import Transaction
from wms.db.pilot import TokenDue
from wms.db.sql import load
from wms.ids import PilotId

SQL = load(__file__)


class StoredSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot's one-time secret as stored, and the identity that the pilot's token would name."""

    pilot: TokenDue
    digest: bytes
    """The SHA-256 of the secret."""
    expired: bool
    ended: bool
    """Whether the pilot has certainly ended. False if its computing element only lost contact with it."""
    exchange_id: str | None
    """The id of the exchange in which the secret was used; None if it was not used."""
    exchanged_ago: float | None
    """Seconds since the secret was used; None if it was not used."""
    refusals: int
    """How many exchanges of this secret were refused."""


async def insert(tx: Transaction, digests: Mapping[PilotId, bytes], seconds: float) -> None:
    """Store the hashes of these pilots' secrets, which may be exchanged for `seconds` seconds. The pilots must be stored already."""
    if digests:
        await tx.execute(SQL["insert"], list(digests), list(digests.values()), seconds)


async def lock(tx: Transaction, pilot_ids: Sequence[PilotId]) -> dict[PilotId, StoredSecret]:
    """Return the secrets of these pilots, and keep others from exchanging them until the transaction ends."""
    rows = [dict(row) for row in await tx.fetch(SQL["lock"], sorted(set(pilot_ids)))]
    return {PilotId(row["pilot_id"]): _stored(row) for row in rows}


def _stored(row: dict[str, object]) -> StoredSecret:
    pilot = TokenDue(**{name: row.pop(name) for name in TokenDue.__struct_fields__})  # type: ignore[arg-type] # a row's columns
    return StoredSecret(pilot=pilot, **row)  # type: ignore[arg-type]


async def exchanged(tx: Transaction, exchanges: Mapping[PilotId, str], token_seconds: float) -> None:
    """Store in which exchange each of these secrets was used, and that the pilots' tokens expire after `token_seconds`."""
    if exchanges:
        await tx.execute(SQL["exchanged"], list(exchanges), list(exchanges.values()), token_seconds)


async def refused(tx: Transaction, pilot_ids: Sequence[PilotId]) -> None:
    """Count a refused exchange of each of these pilots' secrets."""
    if pilot_ids:
        await tx.execute(SQL["refused"], pilot_ids)


async def revoke_ended(tx: Transaction, *, since: float, token_seconds: float, by: str) -> bool:
    """Revoke the tokens of pilots that came through a gateway and ended at least `since` seconds ago, until the tokens expire.

    `token_seconds` is how long a token is valid, and `by` names who revokes. Pilots with which their computing element only lost contact
    keep their tokens. Return whether any token was revoked.
    """
    return await tx.execute(SQL["revoke_ended"], since, by, token_seconds) > 0


async def revoke_copied(
    tx: Transaction, pilot_ids: Sequence[PilotId], *, reason: str, token_seconds: float, by: str
) -> None:
    """Mark these pilots as ended, and revoke their tokens, because others have their secrets too.

    `token_seconds` is how long a token is valid.

    They get no more jobs, and new pilots are sent in their place. Their leases are not shortened, since their payloads may still run.
    `by` names who revokes.
    """
    if pilot_ids:
        await tx.execute(SQL["revoke_copied"], pilot_ids, reason, by, token_seconds)
