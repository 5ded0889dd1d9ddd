"""The calendar of slots against a brute-force reference that counts CPUs second by second."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.agreement.offers import at
from wms.agreement.calendar import Booking, CpuRequest, SlotCalendar
from wms.ids import AgreementId

CPUS = 8
END = 60
"""The last second that the reference looks at."""


def booking(name: str, cpus: int, start: int, seconds: int, window: tuple[int, int] | None = None) -> Booking:
    return Booking(
        agreement_id=AgreementId(name),
        cpus=cpus,
        start_at=at(start),
        ends_at=at(start + seconds),
        window=window and (at(window[0]), at(window[1])),
    )


def wish(cpus: int, seconds: int, first: int, last: int) -> CpuRequest:
    return CpuRequest(cpus=cpus, duration=timedelta(seconds=seconds), first=at(first), last=at(last))


def used(calendar: SlotCalendar, second: int) -> int:
    return sum(each.cpus for each in calendar if each.start_at <= at(second) < each.ends_at)


def fits(calendar: SlotCalendar, cpus: int, start: int, seconds: int) -> bool:
    return all(used(calendar, t) + cpus <= calendar.cpus for t in range(start, start + seconds))


def overbooked(calendar: SlotCalendar) -> list[int]:
    return [t for t in range(-END, 2 * END) if used(calendar, t) > calendar.cpus]


Asked = tuple[int, int, int, int, bool]
asked = st.tuples(
    st.integers(1, CPUS + 1), st.integers(1, 15), st.integers(0, 30), st.integers(0, 30), st.booleans()
)


def play(offers: list[Asked], *, moves: bool) -> SlotCalendar:
    """Book one offer after the other as the calendar says, and hold each answer against the reference."""
    calendar = SlotCalendar(CPUS)
    for n, (cpus, seconds, first, span, flexible) in enumerate(offers):
        wanted = wish(cpus, seconds, first, first + span)
        start = calendar.earliest(wanted)
        good = [
            t for t in range(first, first + span + 1) if cpus <= CPUS and fits(calendar, cpus, t, seconds)
        ]
        assert start == (at(good[0]) if good else None)
        room = calendar.room(wanted)
        if room is None or (room.moved and not moves):
            continue
        for each in room.moved:
            calendar.drop(each.agreement_id)
            calendar.book(each)
        window = (wanted.first, wanted.last) if flexible else None
        there = wanted.at(room.start_at, AgreementId(f"a{n}"))
        calendar.book(
            Booking(
                agreement_id=there.agreement_id,
                cpus=cpus,
                start_at=there.start_at,
                ends_at=there.ends_at,
                window=window,
            )
        )
        assert wanted.first <= room.start_at <= wanted.last
        assert not overbooked(calendar)
        assert calendar.most_used() <= CPUS
    return calendar


@given(st.lists(asked, max_size=12))
def test_the_start_is_the_earliest_and_there_are_never_more_cpus_than_there_are(offers: list[Asked]) -> None:
    play(offers, moves=False)


@given(st.lists(asked, max_size=12))
def test_moved_reservations_stay_in_their_windows_and_overbook_nothing(offers: list[Asked]) -> None:
    for each in play(offers, moves=True):
        assert each.window is None or each.window[0] <= each.start_at <= each.window[1]


@given(st.lists(asked, max_size=10), st.data())
def test_asking_leaves_the_calendar_as_it_was(offers: list[Asked], data: st.DataObject) -> None:
    calendar = play(offers, moves=True)
    before = sorted((each.agreement_id, each.start_at) for each in calendar)
    cpus, seconds, first, span, _ = data.draw(asked)
    calendar.room(wish(cpus, seconds, first, first + span))
    for name, _ in before:
        calendar.sooner(name, at(0))
    assert sorted((each.agreement_id, each.start_at) for each in calendar) == before


@given(st.lists(asked, max_size=10))
def test_dropping_all_leaves_nothing(offers: list[Asked]) -> None:
    calendar = play(offers, moves=True)
    for each in list(calendar):
        calendar.drop(each.agreement_id)
    assert calendar.most_used() == 0
    assert calendar.earliest(wish(CPUS, 10, 0, 0)) == at(0)


def test_a_short_one_is_filled_in_before_a_longer_one() -> None:
    calendar = SlotCalendar(8, [booking("wide", 8, 20, 30)])
    assert calendar.earliest(wish(4, 20, 0, 50)) == at(0)
    assert calendar.earliest(wish(4, 21, 0, 50)) == at(50)


def test_a_flexible_one_makes_room_for_one_that_is_not() -> None:
    calendar = SlotCalendar(8, [booking("flexible", 8, 0, 10, window=(0, 20))])
    room = calendar.room(wish(8, 10, 0, 5))
    assert room is not None
    assert room.start_at == at(0)
    assert [(each.agreement_id, each.start_at) for each in room.moved] == [("flexible", at(10))]


@pytest.mark.parametrize("window", [None, (0, 9)])
def test_none_moves_that_may_not_or_that_has_no_other_place(window: tuple[int, int] | None) -> None:
    calendar = SlotCalendar(8, [booking("there", 8, 0, 10, window=window)])
    assert calendar.room(wish(8, 10, 0, 5)) is None


def test_a_flexible_one_goes_where_room_came_free_but_not_into_the_past() -> None:
    calendar = SlotCalendar(8, [booking("first", 8, 0, 20), booking("flexible", 8, 20, 10, window=(0, 30))])
    assert calendar.sooner(AgreementId("flexible"), at(5)) is None
    calendar.drop(AgreementId("first"))
    sooner = calendar.sooner(AgreementId("flexible"), at(5))
    assert sooner is not None
    assert (sooner.start_at, sooner.ends_at) == (at(5), at(15))
