"""Renews pilots' tokens before they expire, as long as the pilots are stored as alive.

A pilot that waited in a batch system until its token had expired finds a new one within seconds of its start.
"""

from services.pilot_submitter.pilot_factory import PilotFactory
from wms.db import pilot
from wms.db.database import Database
from wms.messages.site_inbox import inbox

AT_ONCE = 500
"""The most tokens that one transaction renews, the oldest first."""


class TokenRenewer:
    """Sends living pilots new tokens. One that is lost on the way is sent again in a later round."""

    def __init__(self, db: Database, maker: PilotFactory) -> None:
        self._db = db
        self._maker = maker
        self._token_seconds = maker.token_seconds

    @property
    def every_seconds(self) -> float:
        """Seconds between two rounds: a token is renewed up to eight times before it ends."""
        return min(10.0, self._token_seconds / 16)

    async def renew(self) -> bool:
        """Send new tokens to pilots whose tokens are in the second half of their life; return whether there may be more."""
        async with self._db.transaction() as tx:
            due = await pilot.tokens_due(
                tx, within=self._token_seconds / 2, pause=self.every_seconds, limit=AT_ONCE
            )
            for each in due:
                tx.reply(inbox(each.site), each.pilot_id, self._maker.renewal(each))
            await pilot.tokens_sent(tx, [each.pilot_id for each in due])
        return len(due) == AT_ONCE
