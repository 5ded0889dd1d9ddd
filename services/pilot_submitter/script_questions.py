"""Questions that wait for a site's mapping script. Owners take turns, so that one with many questions does not delay the others.

Their number is limited. At the limit, an owner with less than an equal share displaces the newest question of the owner with
the most. A displaced question is asked again while it is needed.
"""

from typing import TypeAlias

WANTED_LIMIT = 1_000
"""The most questions for one script that may wait, over all owners. At the limit, questions are displaced or not taken."""

Owner: TypeAlias = tuple[str, str]
"""The names of a VO and of an owner in it."""


class ScriptQuestions:
    """Waiting questions by owner; those of one owner are in the order of their arrival. `limit` is the most over all owners."""

    def __init__(self, limit: int = WANTED_LIMIT) -> None:
        self._limit = limit
        self._count = 0
        self._by_owner: dict[Owner, dict[str, None]] = {}
        """Questions by owner. The first owner has the next turn; the values of the inner mapping mean nothing."""

    def __len__(self) -> int:
        return self._count

    def add(self, owner: Owner, question: str) -> None:
        """Add a question of an owner. Nothing happens if it waits already, or if the owner has used its share of the limit."""
        if question in self._by_owner.get(owner, ()) or not self._make_room(owner):
            return
        self._by_owner.setdefault(owner, {})[question] = None
        self._count += 1

    def next(self) -> str | None:
        """Remove and return the oldest question of the owner whose turn it is; None if no question waits.

        That owner's next turn comes after those of all others.
        """
        if not self._by_owner:
            return None
        owner = next(iter(self._by_owner))
        own = self._by_owner.pop(owner)
        question = next(iter(own))
        self._by_owner[owner] = own
        self._remove(owner, question)
        return question

    def answered(self, question: str) -> None:
        """Remove a question from all owners that wait for its answer."""
        for owner in [owner for owner, own in self._by_owner.items() if question in own]:
            self._remove(owner, question)

    def _make_room(self, owner: Owner) -> bool:
        """Return whether another question of an owner may be added.

        At the limit, an owner with less than an equal share displaces the newest question of the owner with the most.
        """
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
