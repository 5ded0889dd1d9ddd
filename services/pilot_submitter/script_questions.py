"""Questions that wait for a mapping script. Owners take turns, so that one with many does not delay another's.

The room is bounded. Where it is full, the owner with the most questions gives up its newest for an owner with less than an
equal share. What is given up is still wanted, and comes again.
"""

from typing import TypeAlias

WANTED_LIMIT = 1_000
"""Questions that wait, of all owners together."""

Owner: TypeAlias = tuple[str, str]
"""A VO and one who submits in it."""


class ScriptQuestions:
    """Waiting questions by owner, each owner's in the order in which they came."""

    def __init__(self, limit: int = WANTED_LIMIT) -> None:
        self._limit = limit
        self._count = 0
        self._by_owner: dict[Owner, dict[str, None]] = {}
        """Whose turn is next stands first."""

    def __len__(self) -> int:
        return self._count

    def add(self, owner: Owner, question: str) -> None:
        """Have a question wait, if there is room for this owner's."""
        if question in self._by_owner.get(owner, ()) or not self._make_room(owner):
            return
        self._by_owner.setdefault(owner, {})[question] = None
        self._count += 1

    def next(self) -> str | None:
        """Return the oldest question of the owner whose turn it is, who comes last then; None if none waits."""
        if not self._by_owner:
            return None
        owner = next(iter(self._by_owner))
        own = self._by_owner.pop(owner)
        question = next(iter(own))
        self._by_owner[owner] = own
        self._remove(owner, question)
        return question

    def answered(self, question: str) -> None:
        """Forget a question, whoever wants it."""
        for owner in [owner for owner, own in self._by_owner.items() if question in own]:
            self._remove(owner, question)

    def _make_room(self, owner: Owner) -> bool:
        """Tell whether there is room for one more of an owner; who has less than an equal share takes it from who has the most."""
        if self._count < self._limit:
            return True
        share = self._limit // len({*self._by_owner, owner})
        if len(self._by_owner.get(owner, ())) >= share:
            return False
        most = max(self._by_owner, key=lambda each: len(self._by_owner[each]))
        self._remove(most, next(reversed(self._by_owner[most])))
        return True

    def _remove(self, owner: Owner, question: str) -> None:
        own = self._by_owner[owner]
        del own[question]
        self._count -= 1
        if not own:
            del self._by_owner[owner]
