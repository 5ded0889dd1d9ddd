"""Sends pilots new tokens before theirs end, for as long as their rows say that they live.

A pilot that waited in a batch system until its token had ended finds a new one within seconds of its start.
"""

from services.pilot_submitter.pilot_factory import PilotFactory
from wms.db import pilot
from wms.db.database import Database
from wms.messages.site_inbox import inbox

AT_ONCE = 500
"""Pilots in one transaction: the oldest tokens go first."""


class TokenRenewer:
    """Renews tokens of pilots whose rows say that they live. A renewal that is lost is made again at the next look."""

    def __init__(self, db: Database, maker: PilotFactory) -> None:
        self._db = db
        self._maker = maker
        self._token_seconds = maker.token_seconds

    @property
    def every_seconds(self) -> float:
        """How often to look: a token is renewed some eight times before it ends, should renewals be lost."""
        return min(10.0, self._token_seconds / 16)

    async def renew(self) -> bool:
        """Renew the tokens that are in their second half; return whether there may be more."""
        async with self._db.transaction() as tx:
            due = await pilot.tokens_due(
                tx, within=self._token_seconds / 2, pause=self.every_seconds, limit=AT_ONCE
            )
            for each in due:
                tx.reply(inbox(each.site), each.pilot_id, self._maker.renewal(each))
            await pilot.tokens_sent(tx, [each.pilot_id for each in due])
        return len(due) == AT_ONCE
