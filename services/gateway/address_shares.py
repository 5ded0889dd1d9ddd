"""What each address has of something, and which addresses have most of it."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class AddressShares(Generic[T]):
    """Members by address. Each change costs the same, however many there are."""

    def __init__(self) -> None:
        # A dict finds its oldest entry slowly after many deletions.
        self._members: dict[str, OrderedDict[T, None]] = {}
        self._by_count: dict[int, OrderedDict[str, None]] = {}
        """The addresses by how many members they have; in each, the one that has had so many for longest comes first."""

    def count(self, address: str) -> int:
        """Return how many members an address has."""
        return len(self._members.get(address, ()))

    def add(self, address: str, member: T) -> None:
        """Add a member to an address that does not have it."""
        members = self._members.setdefault(address, OrderedDict())
        members[member] = None
        self._move(address, len(members) - 1, len(members))

    def remove(self, address: str, member: T) -> bool:
        """Remove a member from an address. Return whether the address had it."""
        members = self._members.get(address, OrderedDict())
        if member not in members:
            return False
        del members[member]
        self._move(address, len(members) + 1, len(members))
        if not members:
            del self._members[address]
        return True

    def from_most(self) -> Iterator[T]:
        """Yield all members: first those of the address that has most, of each address its oldest first."""
        for count in sorted(self._by_count, reverse=True):
            for address in self._by_count[count]:
                yield from self._members[address]

    def _move(self, address: str, before: int, after: int) -> None:
        if before:
            del self._by_count[before][address]
            if not self._by_count[before]:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, OrderedDict())[address] = None
