"""The calendar of slots against a brute-force reference that counts CPUs second by second."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.agreement.offers import at
from wms.agreement.calendar import Booking, CpuRequest, OwnerBound, SlotCalendar
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


HALF = OwnerBound(share=0.5, soon=at(0))


def owned(calendar: SlotCalendar, name: str, owner: str, wanted: CpuRequest) -> int | None:
    """Book the earliest start for an owner, and return it in seconds; None if there is none."""
    wanted = replace(wanted, owner=owner)
    start = calendar.earliest(wanted)
    if start is None:
        return None
    calendar.book(wanted.at(start, AgreementId(name)))
    return int((start - at(0)).total_seconds())


def test_one_owner_fills_half_of_the_cpus_and_others_start_at_once() -> None:
    calendar = SlotCalendar(CPUS, owners=HALF)
    starts = [owned(calendar, f"m{n}", "mallory", wish(1, 10, 0, 10_000)) for n in range(100)]
    assert starts == [n // 4 * 10 for n in range(100)]
    assert owned(calendar, "i", "innocent", wish(4, 1_000, 0, 0)) == 0


def test_an_only_asker_has_the_cpus_that_are_free_now_and_half_of_those_of_later() -> None:
    calendar = SlotCalendar(CPUS, owners=OwnerBound(share=0.5, lone="ann", soon=at(5)))
    starts = [owned(calendar, f"a{n}", "ann", wish(2, 10, 0, 100)) for n in range(8)]
    assert starts == [0, 0, 0, 0, 10, 10, 20, 20]


def test_a_wide_reservation_is_made_for_an_owner_who_has_no_other() -> None:
    calendar = SlotCalendar(CPUS, owners=HALF)
    assert owned(calendar, "wide", "mallory", wish(8, 10, 0, 100)) == 0
    assert owned(calendar, "wider", "mallory", wish(5, 10, 0, 100)) is None
    assert owned(calendar, "small", "mallory", wish(4, 10, 0, 100)) == 10
    assert owned(calendar, "other", "innocent", wish(8, 10, 0, 100)) == 20


def test_of_one_cpu_each_owner_has_one_reservation() -> None:
    calendar = SlotCalendar(1, owners=HALF)
    starts = [owned(calendar, f"{n}", owner, wish(1, 10, 0, 100)) for n, owner in enumerate("mmi")]
    assert starts == [0, None, 10]


def test_a_flexible_one_is_moved_only_where_its_owner_may_have_more() -> None:
    there = [booking(name, 4, 0, 10) for name in ("first", "second")]
    calendar = SlotCalendar(CPUS, [replace(each, owner="mallory") for each in there[:1]], HALF)
    late = replace(booking("late", 4, 10, 10, window=(0, 30)), owner="mallory")
    calendar.book(late)
    assert calendar.sooner(AgreementId("late"), at(0)) is None
    calendar.drop(AgreementId("late"))
    calendar.book(replace(late, owner="innocent"))
    sooner = calendar.sooner(AgreementId("late"), at(0))
    assert sooner is not None
    assert (sooner.start_at, sooner.owner) == (at(0), "innocent")


@given(st.lists(st.tuples(st.sampled_from("abc"), asked), max_size=12))
def test_no_owner_ever_holds_more_than_half_unless_alone_in_one(offers: list[tuple[str, Asked]]) -> None:
    calendar = SlotCalendar(CPUS, owners=HALF)
    for n, (owner, (cpus, seconds, first, span, _)) in enumerate(offers):
        owned(calendar, f"{n}", owner, wish(cpus, seconds, first, first + span))
    assert not overbooked(calendar)
    for owner in "abc":
        theirs = [each for each in calendar if each.owner == owner]
        wide = [each for each in theirs if each.cpus > CPUS // 2]
        assert len(wide) <= 1
        for t in range(90):
            now = [each.cpus for each in theirs if each.start_at <= at(t) < each.ends_at]
            assert sum(now) <= CPUS // 2 or len(now) == 1
