"""A client with operators' requests about dead letters: messages that a service could not handle, kept for an operator."""

from collections.abc import AsyncIterator, Sequence

from wms.client.access_client import AccessClient
from wms.client.query_client import PAGES_LIMIT
from wms.client.submission import new_id
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies


class DeadLetterClient(AccessClient):
    """A user's connection to the system, with the calls about dead letters. All these calls raise Rejected for users who are no operators."""

    async def dead_letters(
        self,
        *,
        consumer: str = "",
        replayed: bool = False,
        before: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[replies.DeadLetterLine]:
        """Yield the dead letters, the newest first, at most `limit` (None: a million). They are fetched page by page.

        `consumer` yields only the letters of that consumer. If `replayed` is True, letters that have been handled since are yielded too.
        `before` yields only letters with smaller numbers.
        """
        left = PAGES_LIMIT * asked.PAGE_LIMIT if limit is None else limit
        while left > 0:
            query = asked.ListDeadLetters(
                query_id=new_id(),
                client=self._exchange.client,
                consumer=consumer,
                replayed=replayed,
                before=before,
                limit=min(left, asked.PAGE_LIMIT),
            )
            page = await self._ask(query, replies.DeadLetters)
            for line in page.letters:
                yield line
            if page.before is None:
                return
            before = page.before
            left -= len(page.letters)

    async def dead_letter(self, number: int) -> replies.DeadLetterDetail:
        """Return all that is kept of a dead letter. Raise Rejected (NO_SUCH_LETTER) if none has this number."""
        query = asked.ShowDeadLetter(query_id=new_id(), client=self._exchange.client, letter=number)
        return await self._ask(query, replies.DeadLetterDetail)

    async def replay_dead_letters(self, numbers: Sequence[int], reason: str = "") -> str:
        """Have the consumers of the dead letters with these numbers handle them again: all of them, or none. Return the new state as text."""
        return await self._order(
            ordered.ReplayDeadLetters(
                command_id=CommandId(new_id()),
                letters=tuple(numbers),
                reason=reason,
                client=self._exchange.client,
            )
        )

    async def drop_dead_letters(self, numbers: Sequence[int], reason: str) -> str:
        """Delete the dead letters with these numbers: all of them, or none. Return the new state as text."""
        return await self._order(
            ordered.DropDeadLetters(
                command_id=CommandId(new_id()),
                letters=tuple(numbers),
                reason=reason,
                client=self._exchange.client,
            )
        )

    async def skip_message(
        self, consumer: str, topic: str, partition: int, offset: int, *, reason: str
    ) -> str:
        """Have a consumer skip the next message of a partition, and keep the message as a dead letter. Return the state as text.

        `offset` must be that of the next message. The job manager skips it within seconds, once nobody is handling it; if it cannot, it
        records why. Raise Rejected (NO_SUCH_PARTITION) for an unknown partition, and (NOT_NEXT) if another message is next.
        """
        return await self._order(
            ordered.SkipMessage(
                command_id=CommandId(new_id()),
                consumer=consumer,
                topic=topic,
                partition=partition,
                offset=offset,
                reason=reason,
                client=self._exchange.client,
            )
        )

    async def _order(
        self, order: ordered.ReplayDeadLetters | ordered.DropDeadLetters | ordered.SkipMessage
    ) -> str:
        answer = await self._exchange.ask(ordered.TOPIC, order.command_id, order, replies.Ruled, self.timeout)
        return answer.said
