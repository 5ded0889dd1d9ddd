"""Limits on waiting jobs. A submission that would exceed one is refused completely; the refusal names the numbers."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from wms.db import limit, waiting_limits
from wms.db.database import Database, Transaction
from wms.db.waiting_limits import LockedRooms, WaitingRoom, Whose
from wms.errors import Rejected
from wms.ids import CommandId, Identity

SETTLED_AFTER = timedelta(seconds=10)
"""The time after a limit was set within which other job managers may not apply it yet. Until then waiting jobs are counted for each submission."""
COUNTED_FOR = timedelta(seconds=1)
"""The greatest age of the count of waiting jobs with which a submission may be refused."""


class _Rule(NamedTuple):
    most: int
    settled_at: datetime


class WaitingQuota:
    """The limits on waiting jobs of owners, groups and VOs, as they were last read."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._rules: dict[Whose, _Rule] = {}

    async def refresh(self) -> None:
        """Read the limits on waiting jobs from the database."""
        async with self._db.transaction() as tx:
            said = await limit.sourced(tx)
        self._rules = {
            (each.limit.attribute, each.limit.value): _Rule(each.limit.most, each.said_at + SETTLED_AFTER)
            for each in said
            if each.limit.kind == "waiting" and not each.lifted
        }

    async def refused(
        self, tx: Transaction, identity: Identity, sizes: Mapping[CommandId, int]
    ) -> dict[CommandId, Rejected]:
        """Return the submissions of one owner that exceed a limit on waiting jobs, by command id, each with the refusal.

        `sizes` are their numbers of jobs. They are checked in order. The jobs of accepted ones are counted against the limits in this transaction.
        """
        rules = dict(self._concerning(identity))
        if not rules or not sizes:
            return {}
        desk = _Desk(rules, await waiting_limits.lock(tx, rules))
        refused = {
            command_id: fault for command_id, size in sizes.items() if (fault := await desk.admit(tx, size))
        }
        await waiting_limits.settle(tx, desk.rooms)
        return refused

    def _concerning(self, identity: Identity) -> Iterable[tuple[Whose, _Rule]]:
        for whose in zip(("owner", "owner_group", "vo"), identity, strict=True):
            rules = [self._rules[each] for each in (whose, (whose[0], "*")) if each in self._rules]
            if rules:
                yield (
                    whose,
                    _Rule(min(each.most for each in rules), max(each.settled_at for each in rules)),
                )


class _Desk:
    """How many more jobs the limits let wait, while one batch of submissions of one owner is checked."""

    def __init__(self, rules: Mapping[Whose, _Rule], locked: LockedRooms) -> None:
        self.rooms = dict(locked.rooms)
        self._rules = rules
        self._at = locked.at
        self._admitted = 0
        self._counted: set[Whose] = set()

    async def admit(self, tx: Transaction, size: int) -> Rejected | None:
        """Count `size` jobs against the limits and return None. If a limit does not allow them, count none and return the refusal."""
        for whose, rule in self._rules.items():
            if self._doubtful(whose, rule, size):
                left = rule.most - await waiting_limits.waiting(tx, whose) - self._admitted
                self.rooms[whose] = WaitingRoom(left, self._at)
                self._counted.add(whose)
            left = self.rooms[whose].left
            if size > left:
                return _refusal(whose, rule.most, rule.most - left, size)
        for whose in self._rules:
            self.rooms[whose] = self.rooms[whose]._replace(left=self.rooms[whose].left - size)
        self._admitted += size
        return None

    def _doubtful(self, whose: Whose, rule: _Rule, size: int) -> bool:
        """Return whether the waiting jobs must be counted anew to decide on `size` more, because the stored number may be outdated."""
        if whose in self._counted:
            return False
        room = self.rooms[whose]
        stale = self._at - room.counted_at > COUNTED_FOR
        return room.counted_at < rule.settled_at or (size > room.left and stale)


def _refusal(whose: Whose, most: int, waiting: int, size: int) -> Rejected:
    attribute, value = whose
    return Rejected(
        "WAITING_LIMIT",
        f"{size:,} more would make {waiting + size:,} jobs of {attribute} {value} wait; the limit is {most:,}",
        "submit fewer, or again once some have started; `wms limits` shows the limit",
    )
