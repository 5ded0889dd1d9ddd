"""Revokes the tokens of ended pilots that reached the services through a gateway, so that nobody can use a copy of them."""

from wms.db import pilot_secret
from wms.db.database import Database

ENDED_SECONDS = 60.0
"""Seconds after a pilot's end at which its token is revoked. By then its last reports have been answered, also repeated ones."""
SOURCE = "pilot_submitter"


async def revoke_ended(db: Database, token_seconds: float) -> None:
    """Revoke the tokens of pilots of a gateway that ended over `ENDED_SECONDS` ago.

    `token_seconds` is how long tokens are valid: after that the revocation is over. Pilots with which their element only lost
    contact keep their tokens, since they may still work.
    """
    async with db.transaction() as tx:
        await pilot_secret.revoke_ended(tx, since=ENDED_SECONDS, token_seconds=token_seconds, by=SOURCE)
