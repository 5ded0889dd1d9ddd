"""A fuzzer with valid tokens: sends mutated messages to every topic at a rate, and counts what they are answered with."""

import asyncio
import contextlib
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import asyncpg
import msgspec

from tests.hostile.mutation import Mutator
from tests.hostile.target import Target, key_for
from wms.auth.token import Claims
from wms.bus.topics import find
from wms.embedded.keys_and_tokens import VO
from wms.errors import Unavailable
from wms.messages import (
    ads,
    commands,
    events,
    match_requests,
    queries,
    queue_changes,
    replies,
    reports,
    site_inbox,
)

OWNER, SITE, PILOT = "fuzzer", "Mordor", "p-00000000000f0220"
TICK_SECONDS = 0.25
TELL_SECONDS = 30.0
_TYPE = re.compile(rb'"type":"([\w-]{1,64})"')


class TopicCount(msgspec.Struct):
    """What became of the messages to one topic."""

    sent: int = 0
    bytes: int = 0
    failed: int = 0
    """Not sent, as the broker was away."""
    dead_letters: int = 0
    """Kept at the end: their number is bounded."""


class Fuzzer:
    """An attacker with the tokens of a user, a site and a pilot, all valid, who sends `rate` messages a second.

    `internal`: also to the topics that services alone write, as brokers without access rules let everybody.
    """

    def __init__(
        self, target: Target, *, rate: float, seed: int, internal: bool = True, quiet: bool = False
    ) -> None:
        self._target = target
        self._rate = rate
        self._quiet = quiet
        self._rng = random.Random(seed)
        self._tokens = {
            "user": target.user_token(OWNER),
            "site": target.site_token(SITE),
            "pilot": target.token(
                Claims(
                    kind="pilot", owner=OWNER, group="users", vo=VO, pilot_id=PILOT, site=SITE, ce="ce-fuzz"
                )
            ),
        }
        inbox, agents = replies.inbox(OWNER), site_inbox.inbox("local")
        self._sender = {
            commands.TOPIC: "user",
            queries.TOPIC: "user",
            ads.TOPIC: "site",
            match_requests.TOPIC: "pilot",
            reports.TOPIC: "pilot",
            inbox: "user",
            agents: "user",
            **({events.TOPIC: "user", queue_changes.TOPIC: "user"} if internal else {}),
        }
        names = {each: each for each in self._sender} | {
            "wms.user.owner.inbox": inbox,
            "wms.site.site.inbox": agents,
        }
        self._mutator = Mutator(seed, names)
        self.counts = {topic: TopicCount() for topic in self._sender}
        self.answers: Counter[str] = Counter()

    async def run(self) -> None:
        """Send until cancelled; a broker that is away is waited for."""
        listening = asyncio.create_task(self._listen())
        began = told = time.monotonic()
        sent = 0
        try:
            while True:
                due = int((time.monotonic() - began) * self._rate) - sent
                await self._send(min(due, int(self._rate) + 1))
                sent += due
                if not self._quiet and time.monotonic() - told > TELL_SECONDS:
                    told = time.monotonic()
                    sys.stdout.write(
                        f"{told - began:7.0f} s  {self.sent:,} sent, {self.answers.total():,} answers\n"
                    )
                    sys.stdout.flush()
                await asyncio.sleep(TICK_SECONDS)
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

    @property
    def sent(self) -> int:
        """Messages that the broker took."""
        return sum(each.sent for each in self.counts.values())

    async def _send(self, number: int) -> None:
        chosen = Counter(self._rng.choices(list(self._sender), k=max(0, number)))
        for topic, count in chosen.items():
            await self._send_to(topic, [self._mutator.message(topic) for _ in range(count)])

    async def _send_to(self, topic: str, payloads: Sequence[bytes]) -> None:
        count = self.counts[topic]
        header = ("authorization", f"Bearer {self._tokens[self._sender[topic]]}".encode())
        keys = [key_for(topic, self._rng.randrange(find(topic).partitions), 0) for _ in payloads]
        try:
            await self._target.kafka.send_many(topic, keys, payloads, [header])
            count.sent += len(payloads)
            count.bytes += sum(map(len, payloads))
        except Unavailable:
            count.failed += len(payloads)

    async def _listen(self) -> None:
        """Count what comes into the attacker's own inbox."""
        while True:
            try:
                await self._listen_once()
            except Unavailable:
                await asyncio.sleep(TICK_SECONDS)

    async def _listen_once(self) -> None:
        await self._target.kafka.ensure([find(replies.inbox(OWNER))])
        reader = await self._target.kafka.reader(replies.inbox(OWNER))
        try:
            await reader.assign_end()
            while True:
                for message in await reader.poll(1.0, 1_000):
                    if not message.token:  # its own messages have one
                        found = _TYPE.search(message.payload)
                        self.answers[found[1].decode() if found else "unreadable"] += 1
        finally:
            await reader.close()

    async def summary(self) -> str:
        """Return for each topic what was sent to it, and the answers."""
        connection = await asyncpg.connect(self._target.database)
        try:
            rows = await connection.fetch("select topic, count(*) from dead_letter group by topic")
        finally:
            await connection.close()
        for topic, letters in rows:
            if topic in self.counts:
                self.counts[topic].dead_letters = letters
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{'TOPIC':28} {'SENT':>9} {'BYTES':>14} {'NOT SENT':>9} {'DEAD LETTERS':>13}"
        for topic, each in self.counts.items():
            yield f"{topic:28} {each.sent:9,} {each.bytes:14,} {each.failed:9,} {each.dead_letters:13,}"
        yield "answers: " + (
            ", ".join(f"{count:,} {name}" for name, count in self.answers.most_common()) or "none"
        )
