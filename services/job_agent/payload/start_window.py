"""The window in which a pilot's payloads may start, by the clock of the node. Their files are fetched before it opens, where there is time."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from services.job_agent.payload.file_staging import WATCH_SECONDS
from wms.job.reasons import Code, Reason


class PayloadStartWindow(NamedTuple):
    """No payload starts before `earliest`, nor after `latest`. None: there is no such bound."""

    earliest: datetime | None = None
    latest: datetime | None = None

    async def wait(
        self, now: Callable[[], datetime], stop_reason: Callable[[], Reason | None]
    ) -> Reason | None:
        """Wait until the window opens. Return None if the payload may start now, else the reason why it must not.

        `stop_reason` tells whether it is to end for another reason; it is asked every WATCH_SECONDS.
        """
        while (reason := stop_reason()) is None and self.earliest is not None and now() < self.earliest:  # noqa: ASYNC110 - the end of a lease is no event
            await asyncio.sleep(min(WATCH_SECONDS, max(timedelta(), self.earliest - now()).total_seconds()))
        if reason is None and self.latest is not None and now() > self.latest:
            late = (now() - self.latest).total_seconds()
            return Reason(
                Code.TOO_LATE_TO_START, f"its files were there {late:,.0f} s after its latest start"
            )
        return reason
