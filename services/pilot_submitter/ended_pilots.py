"""Revokes the tokens of ended pilots that came through a gateway, so that a copied token is of no use after its pilot."""

from wms.db import pilot_secret
from wms.db.database import Database

ENDED_SECONDS = 60.0
"""Seconds after its end at which a pilot's token is revoked. Its last reports, which may be repeated, have been answered by then."""
SOURCE = "pilot_submitter"


async def revoke_ended(db: Database, token_seconds: float) -> None:
    """Revoke pilots that ended a while ago, until their tokens, which are valid for `token_seconds`, have expired.

    Pilots that were only lost from sight keep theirs.
    """
    async with db.transaction() as tx:
        await pilot_secret.revoke_ended(tx, since=ENDED_SECONDS, token_seconds=token_seconds, by=SOURCE)
