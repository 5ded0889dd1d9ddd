"""Bytes are shared so that no holder has them all."""

import pytest

from services.gateway.problem import TooMany
from services.gateway.shared_room import SharedRoom
from wms.errors import Unavailable


def test_room_is_bounded_and_what_is_held_without_need_is_freed_first() -> None:
    room = SharedRoom(200, "archives")
    unused = [150]
    room.take("alice", unused[0])

    def free_some() -> bool:
        if unused:
            room.give_back("alice", unused.pop())
            return True
        return False

    room.free_some = free_some
    with room.held("bob", 200), pytest.raises(Unavailable, match="archives on their way"):
        room.take("carol", 1)
    room.take("carol", 200)


def test_who_holds_much_leaves_room_for_others() -> None:
    room = SharedRoom(200, "archives")
    for _ in range(2):
        room.take("alice", 50)
    with pytest.raises(TooMany, match="share"):
        room.take("alice", 1)
    room.take("alice", 0)
    room.take("bob", 50)
    room.take("carol", 50)
    with pytest.raises(Unavailable):
        room.take("dave", 1)
    for holder in ("alice", "bob", "carol", "alice"):
        room.give_back(holder, 50)
    assert not room._held, "nothing is remembered of who has none"
