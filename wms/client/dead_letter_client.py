"""A client with operators' requests about messages that could not be handled."""

from collections.abc import AsyncIterator, Sequence

from wms.client.access_client import AccessClient
from wms.client.query_client import PAGES_LIMIT
from wms.client.submission import new_id
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies


class DeadLetterClient(AccessClient):
    """A user's connection to the system, with the calls about dead letters. All of them are for operators alone."""

    async def dead_letters(
        self,
        *,
        consumer: str = "",
        replayed: bool = False,
        before: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[replies.DeadLetterLine]:
        """Yield messages that could not be handled, the newest first, at most `limit`. They are fetched page by page.

        `consumer` yields those of one consumer alone, `replayed` also those that were handled since, `before` those with smaller numbers.
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
        """Return all that is kept of a message that could not be handled. Rejected: NO_SUCH_LETTER."""
        query = asked.ShowDeadLetter(query_id=new_id(), client=self._exchange.client, letter=number)
        return await self._ask(query, replies.DeadLetterDetail)

    async def replay_dead_letters(self, numbers: Sequence[int], reason: str = "") -> str:
        """Have the consumers of these messages handle them again: all of them, or none. Return the state as text."""
        return await self._order(
            ordered.ReplayDeadLetters(
                command_id=CommandId(new_id()),
                letters=tuple(numbers),
                reason=reason,
                client=self._exchange.client,
            )
        )

    async def drop_dead_letters(self, numbers: Sequence[int], reason: str) -> str:
        """Delete these messages: all of them, or none. Return the state as text."""
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
        """Have a consumer skip the message that comes next in a partition, and keep it as a dead letter. Return the state as text.

        A job manager does so within seconds, once nobody is handling the message, or writes down why it cannot. Rejected: NO_SUCH_PARTITION, or NOT_NEXT if another message comes next.
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
