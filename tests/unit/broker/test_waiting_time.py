"""Waiting: a reservation is exact; without one the queue's load counts, or past waits where no load is told, beside the element's word."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.examples import NOW, job, place
from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Correction, GrantedStart, Knowledge, MeasuredWait
from wms.broker.prediction import LONGEST, UNFELT, Prediction
from wms.broker.waiting_time import START_SECONDS, USUAL_RUN, predict_waiting
from wms.ids import CeId

HERE = place().place
RUNS = Knowledge(runs_there={HERE: [1000.0] * 40})
MEAN_RUN = (40 * 1000 + 10 * USUAL_RUN) / 50
"""The usual run time weighs as much as ten of the forty measured ones."""


def wait(at: Candidate, known: Knowledge = RUNS, of: JobToPlace | None = None) -> Prediction:
    return predict_waiting(of or job(), at, known, NOW).prediction


def waits(*seconds: float) -> dict[CeId, list[MeasuredWait]]:
    return {HERE: [MeasuredWait(seconds=each, at=NOW) for each in seconds]}


def test_a_reservation_is_exact_whatever_the_load_is() -> None:
    known = Knowledge(
        reservations={HERE: GrantedStart(start_at=NOW + timedelta(minutes=10))}, waits=waits(9e5)
    )
    found = wait(place(waiting_jobs=1000), known)
    assert (found.seconds, found.low, found.source) == (600, 600, "reservation")
    assert found.high - found.low < 60


def test_a_free_slot_starts_a_job_at_once() -> None:
    found = wait(place(free_slots=3, waiting_jobs=0))
    assert found.seconds == pytest.approx(START_SECONDS)
    assert found.source == "free-slots"


def test_a_queue_empties_at_the_rate_of_its_slots() -> None:
    found = wait(place(running_jobs=10, waiting_jobs=19))
    assert found.seconds == pytest.approx(START_SECONDS + 20 * MEAN_RUN / 10)
    assert found.low < found.seconds < found.high


def test_a_wider_job_waits_for_more_slots() -> None:
    at = place(free_slots=1, waiting_jobs=0)
    assert wait(at, of=job(processors=8)).seconds > wait(at).seconds


def test_jobs_that_were_placed_since_the_count_wait_there_too() -> None:
    at = place(free_slots=0, waiting_jobs=4)
    since = Knowledge(runs_there=RUNS.runs_there, placed_since={HERE: 5})
    assert wait(at, since).seconds == pytest.approx(START_SECONDS + 10 * MEAN_RUN / 10)


def test_our_own_waiting_jobs_are_a_queue_whatever_the_element_says() -> None:
    ours = Knowledge(runs_there=RUNS.runs_there, still_waiting={HERE: [60.0] * 30})
    assert wait(place(free_slots=5, waiting_jobs=0), ours).seconds > 1000
    assert wait(place(), ours).seconds > wait(place(), RUNS).seconds


def test_a_job_that_waits_longer_than_any_did_tells_of_a_long_wait() -> None:
    known = Knowledge(waits=waits(*[100.0] * 5))
    stuck = Knowledge(waits=known.waits, still_waiting={HERE: [90_000.0] * 6})
    assert wait(place(), stuck).seconds > 10 * wait(place(), known).seconds


def test_the_past_tells_where_the_load_is_unknown() -> None:
    found = wait(place(), Knowledge(waits=waits(500.0, 1e7, 500.0)))
    assert found.seconds == pytest.approx(500)
    assert found.source == "history"


def test_the_load_counts_where_it_is_told_whatever_waits_have_been() -> None:
    known = Knowledge(runs_there=RUNS.runs_there, waits=waits(*[20_000.0] * 20))
    assert wait(place(running_jobs=10, waiting_jobs=19), known) == wait(
        place(running_jobs=10, waiting_jobs=19)
    )


def test_one_short_run_hardly_changes_the_model() -> None:
    known, at = Knowledge(runs_there={HERE: [10.0]}), place(running_jobs=10, waiting_jobs=19)
    assert wait(at, known).seconds > 0.9 * wait(at, Knowledge()).seconds


def test_the_elements_word_is_better_than_nothing() -> None:
    found = wait(place(response_seconds=7200.0))
    assert found.seconds == pytest.approx(7200)
    assert found.source == "resource"


def test_who_tells_nothing_is_predicted_widely_and_it_is_said() -> None:
    found = predict_waiting(job(), place(), Knowledge(), NOW)
    assert found.prediction.source == "none"
    assert found.prediction.high > 10 * found.prediction.seconds
    assert found.remarks


def test_it_starts_no_earlier_than_the_user_wants() -> None:
    later = job(earliest_start=NOW + timedelta(hours=1))
    found = wait(place(free_slots=5), of=later)
    assert found.seconds == found.low == 3600


def test_an_element_that_errs_by_habit_is_corrected_slowly() -> None:
    at = place(running_jobs=10, waiting_jobs=19)
    found = []
    for count in (0, 20, 10_000):
        habit = Correction(low=2.0, median=4.0, high=5.0, count=count)
        known = Knowledge(runs_there=RUNS.runs_there, corrections={("umea", "waiting", "queue-model"): habit})
        found.append(wait(at, known))
    plain, half, whole = (each.seconds + UNFELT for each in found)
    assert half == pytest.approx(2 * plain)
    assert whole == pytest.approx(4 * plain, rel=0.01)
    assert len({each.model_seconds for each in found}) == 1


def test_errors_at_other_sites_do_not_move_a_wait() -> None:
    habit = Correction(low=2.0, median=4.0, high=5.0, count=1_000)
    known = Knowledge(runs_there=RUNS.runs_there, corrections={("", "waiting", "queue-model"): habit})
    at = place(running_jobs=10, waiting_jobs=19)
    assert wait(at, known) == wait(at)


NUMBERS = st.none() | st.integers(0, 10**9)
TIMES = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5)


@given(NUMBERS, NUMBERS, NUMBERS, st.none() | st.floats(allow_nan=True), TIMES, TIMES, TIMES)
def test_nonsense_is_bounded(free, running, waiting, response, past, runs, ages) -> None:
    at = place(free_slots=free, running_jobs=running, waiting_jobs=waiting, response_seconds=response)
    found = wait(at, Knowledge(waits=waits(*past), runs_there={HERE: runs}, still_waiting={HERE: ages}))
    assert 0 <= found.low <= found.seconds <= found.high <= LONGEST


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_a_longer_queue_never_waits_shorter(waiting: int, more: int) -> None:
    short, long = (wait(place(running_jobs=10, waiting_jobs=each)) for each in (waiting, waiting + more))
    assert long.seconds >= short.seconds
