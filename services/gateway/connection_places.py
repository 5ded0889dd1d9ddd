"""The places for open connections, shared out by client address.

A connection is a stranger until a request with a valid token comes over it. When places run out, the oldest stranger of the address that has
most of them gives way to the new connection. So whoever opens many of them closes their own. A sixteenth of the places is for strangers:
while they have no more, a known connection without a request under way gives way, again of the address that has most. So nobody who
keeps known connections open keeps all others out.
"""

from collections.abc import Callable
from itertools import chain
from typing import Final

from services.gateway.address_shares import AddressShares

FOR_STRANGERS: Final = 1 / 16
"""The part of all places that strangers have even where known connections want all."""


class Place:
    """The place of one connection."""

    def __init__(self, address: str, end: Callable[[], None]) -> None:
        """Make the place of a stranger. `end` closes the connection at once; once the protocol runs, it sets its own."""
        self.address = address
        self.end = end
        self.is_idle: Callable[[], bool] = _never
        """Whether no request is under way."""


def _never() -> bool:
    return False


class ConnectionPlaces:
    """Gives places to connections, at most `most` in all and `of_address` to each address; None: as many as there are."""

    def __init__(self, most: int, of_address: int | None) -> None:
        self.most = most
        self._of_address = of_address
        self._strangers = AddressShares[Place]()
        self._known = AddressShares[Place]()
        self._taken = self._unknown = 0
        self.cut = 0
        """How many connections were ended because of a limit, since the start."""

    def __len__(self) -> int:
        return self._taken

    def enter(self, address: str, end: Callable[[], None]) -> Place | None:
        """Return a place for a new connection of an address, which `end` closes at once. If there is none, return None.

        The connection that gives way is ended, and leaves by itself.
        """
        here = self._strangers.count(address) + self._known.count(address)
        if self._of_address is not None and here >= self._of_address:
            self.cut += 1
            return None
        if self._taken >= self.most and not self._made_room():
            self.cut += 1
            return None
        place = Place(address, end)
        self._strangers.add(address, place)
        self._taken += 1
        self._unknown += 1
        return place

    def know(self, place: Place) -> None:
        """Count a connection as known, since a request with a valid token has come over it."""
        if self._forget(place):
            self._known.add(place.address, place)

    def leave(self, place: Place) -> None:
        """Free the place of a connection that is closed. A place is freed once, however often this is called."""
        if self._forget(place) or self._known.remove(place.address, place):
            self._taken -= 1

    def _forget(self, place: Place) -> bool:
        was_stranger = self._strangers.remove(place.address, place)
        self._unknown -= was_stranger
        return was_stranger

    def _made_room(self) -> bool:
        strangers = self._strangers.from_most()
        idle = (each for each in self._known.from_most() if each.is_idle())
        are_many = self._unknown > self.most * FOR_STRANGERS
        ended = next(chain(strangers, idle) if are_many else chain(idle, strangers), None)
        if ended is None:
            return False
        self.leave(ended)
        self.cut += 1
        ended.end()
        return True
