"""Who opens many connections closes their own, and no connection of a user in work."""

from services.gateway.connection_places import ConnectionPlaces, Place


class Connection:
    """A connection with its place, if it has one."""

    def __init__(
        self, places: ConnectionPlaces, address: str, *, known: bool = False, idle: bool = True
    ) -> None:
        self.is_ended = False
        self.place = places.enter(address, self.end)
        if self.place is not None and known:
            self.place.is_idle = lambda: idle
            places.know(self.place)

    def end(self) -> None:
        self.is_ended = True


def opened(places: ConnectionPlaces, address: str, count: int) -> list[Connection]:
    return [Connection(places, address) for _ in range(count)]


def test_a_new_connection_takes_the_place_of_a_stranger_where_most_are() -> None:
    places = ConnectionPlaces(10, None)
    few, many = opened(places, "a", 3), opened(places, "b", 7)
    late = opened(places, "c", 2)
    assert [each.is_ended for each in many] == [True] * 2 + [False] * 5, "the oldest go first"
    assert not any(each.is_ended for each in few + late)
    assert (len(places), places.cut) == (10, 2)


def test_who_opens_ever_more_ends_their_own() -> None:
    places = ConnectionPlaces(10, None)
    honest = opened(places, "a", 1)
    flood = opened(places, "b", 100)
    assert not honest[0].is_ended
    assert sum(not each.is_ended for each in flood) == 9


def test_known_connections_stay_while_there_are_strangers() -> None:
    places = ConnectionPlaces(10, None)
    users = [Connection(places, "a", known=True) for _ in range(8)]
    opened(places, "b", 50)
    assert not any(each.is_ended for each in users)


def test_without_strangers_an_idle_connection_gives_way_and_none_in_work() -> None:
    places = ConnectionPlaces(4, None)
    working = [Connection(places, "a", known=True, idle=False) for _ in range(3)]
    idle = Connection(places, "b", known=True)
    assert Connection(places, "c", known=True, idle=False).place is not None
    assert idle.is_ended
    assert not any(each.is_ended for each in working)
    assert Connection(places, "d").place is None, "all are in work"


def test_an_address_has_its_limit_and_a_place_is_freed_once() -> None:
    places = ConnectionPlaces(10, 2)
    first, second, third = (Connection(places, "a", known=True) for _ in range(3))
    assert third.place is None
    assert not first.is_ended
    assert first.place is not None
    places.leave(first.place)
    places.leave(first.place)
    assert len(places) == 1
    places.know(Place("a", first.end))
    assert len(places) == 1, "one that has left is not known any more"
    assert second.place is not None


def test_known_idle_connections_never_keep_all_strangers_out() -> None:
    places = ConnectionPlaces(32, None)
    hoard = [Connection(places, "a", known=True) for _ in range(20)]
    user = Connection(places, "b", known=True)
    hoard += [Connection(places, "a", known=True) for _ in range(11)]
    new = opened(places, "c", 3)
    assert not any(each.is_ended for each in new)
    assert sum(each.is_ended for each in hoard) == 3
    opened(places, "d", 50)
    assert sum(each.is_ended for each in hoard) == 3, "strangers have their part, and no more"
    assert not user.is_ended
