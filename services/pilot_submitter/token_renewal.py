"""Renews pilots' tokens before they expire, as long as the pilots are stored as alive.

New tokens are also sent to pilots that wait in a batch system. One that waited for longer than its first token is valid finds a
new one when it starts.
"""

from services.pilot_submitter.pilot_factory import PilotFactory
from wms.db import pilot
from wms.db.database import Database
from wms.messages.site_inbox import inbox

AT_ONCE = 500
"""The most tokens that one transaction renews: of running pilots first, then of those that were sent none for longest."""


class TokenRenewer:
    """Sends living pilots new tokens. If a new token does not arrive, another is sent in a later round."""

    def __init__(self, db: Database, maker: PilotFactory) -> None:
        self._db = db
        self._maker = maker
        self._token_seconds = maker.token_seconds

    @property
    def every_seconds(self) -> float:
        """Seconds between two rounds: a sixteenth of a token's validity, at most 10.

        So a token that does not arrive can be sent again at least seven times before the old one expires.
        """
        return min(10.0, self._token_seconds / 16)

    async def renew(self) -> bool:
        """Send new tokens to up to `AT_ONCE` pilots whose tokens have less than half of their validity left.

        Return whether there may be more.
        """
        async with self._db.transaction() as tx:
            due = await pilot.tokens_due(
                tx, within=self._token_seconds / 2, pause=self.every_seconds, limit=AT_ONCE
            )
            for each in due:
                tx.reply(inbox(each.site), each.pilot_id, self._maker.renewal(each))
            await pilot.tokens_sent(tx, [each.pilot_id for each in due])
        return len(due) == AT_ONCE
