"""The agenda of a simulation: events in the order of their time, and of their coming where that is the same."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from wms.simulation.agenda import Agenda


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, 7.0]), max_size=20))
def test_events_happen_by_time_and_then_as_they_came(times: list[float]) -> None:
    agenda = Agenda()
    happened: list[tuple[float, int]] = []
    for n, seconds in enumerate(times):
        agenda.after(seconds, lambda number: happened.append((agenda.now, number)), n)
    while agenda.next_at < inf:
        agenda.step()
    assert happened == sorted((seconds, n) for n, seconds in enumerate(times))


def test_time_stands_still_during_an_event_and_later_ones_count_from_it() -> None:
    agenda = Agenda()
    seen: list[float] = []

    def again(left: int) -> None:
        seen.append(agenda.now)
        if left:
            agenda.after(2.0, again, left - 1)
            agenda.after(0.0, lambda _: seen.append(-agenda.now), None)

    agenda.after(1.0, again, 2)
    while agenda.next_at < inf:
        agenda.step()
    assert seen == [1.0, -1.0, 3.0, -3.0, 5.0]
    assert agenda.next_at == inf
