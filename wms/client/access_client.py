"""A client with the requests about access: who the user is, who gave which orders, what jobs used, and which tokens are revoked."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from wms.client.query_client import PAGES_LIMIT, QueryClient
from wms.client.submission import new_id
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies
from wms.runtime import clock

USAGE_DAYS = 30


class AccessClient(QueryClient):
    """A user's connection to the system, with the calls about identity, the audit trail, usage and revocations."""

    async def whoami(self) -> replies.WhoYouAre:
        """Return who you are to the system, as it verified your token: identity, rights, and the token's end."""
        query = asked.WhoAmI(query_id=new_id(), client=self._exchange.client)
        return await self._ask(query, replies.WhoYouAre)

    async def audit_trail(
        self,
        *,
        owner: str = "",
        action: str = "",
        site: str = "",
        job: int | None = None,
        refused: bool = False,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[replies.AuditLine]:
        """Yield the orders and refusals that you may see, the newest first, at most `limit` (None: a million).

        The lines are fetched page by page. Only lines that meet every given condition are yielded. `job` finds orders that named a
        job by its id. If `refused` is True, only refusals are found.
        """
        before: int | None = None
        left = PAGES_LIMIT * asked.PAGE_LIMIT if limit is None else limit
        while left > 0:
            query = asked.ListAuditTrail(
                query_id=new_id(),
                client=self._exchange.client,
                owner=owner,
                action=action,
                site=site,
                job_id=job,
                refused=refused,
                since=since,
                before=before,
                limit=min(left, asked.PAGE_LIMIT),
            )
            page = await self._ask(query, replies.AuditTrail)
            for line in page.lines:
                yield line
            if page.before is None:
                return
            before = page.before
            left -= len(page.lines)

    async def usage(
        self,
        by: Sequence[asked.UsageBy] = (),
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[replies.UsageLine]:
        """Yield what the jobs that you may see have used, summed up by the properties `by`; the largest use comes first.

        Only use from `since` (None: 30 days ago) to `until` (None: now) counts. Both times are extended to whole hours. The lines
        are fetched page by page.
        """
        begin = since or clock.now() - timedelta(days=USAGE_DAYS)
        after: int | None = 0
        while after is not None:
            query = asked.ShowUsage(
                query_id=new_id(),
                client=self._exchange.client,
                by=tuple(by),
                since=begin,
                until=until,
                after=after,
            )
            page = await self._ask(query, replies.UsageReport)
            for line in page.lines:
                yield line
            after = page.after

    async def revocations(self) -> tuple[replies.RevocationLine, ...]:
        """Return the revocations in force, the latest first. Raise Rejected if you are no operator."""
        lines: list[replies.RevocationLine] = []
        after: int | None = 0
        while after is not None and len(lines) < PAGES_LIMIT * asked.PAGE_LIMIT:
            query = asked.ListRevocations(query_id=new_id(), client=self._exchange.client, after=after)
            page = await self._ask(query, replies.RevocationList)
            lines += page.revocations
            after = page.after
        return tuple(lines)

    async def revoke(
        self,
        kind: Literal["token", "subject", "pilot"],
        value: str,
        *,
        reason: str = "",
        for_seconds: float | None = None,
        lift: bool = False,
    ) -> str:
        """Have all services refuse a token (by its `jti`), a subject or a pilot within seconds; return the state as text.

        If `lift` is True, end a revocation instead. `for_seconds` is how long the revocation holds; None: as long as the service
        chooses. Operators may revoke anything. Other users may revoke only the token that they send with this call. Raise Rejected
        if you may not.
        """
        order = ordered.Revoke(
            command_id=CommandId(new_id()),
            kind=kind,
            value=value,
            lift=lift,
            for_seconds=for_seconds,
            reason=reason,
            client=self._exchange.client,
        )
        answer = await self._exchange.ask(ordered.TOPIC, order.command_id, order, replies.Ruled, self.timeout)
        return answer.said
