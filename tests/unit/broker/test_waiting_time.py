"""Waiting: a reservation is exact; without one the queue's load, waits of the past and the element's word are weighed."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.examples import NOW, job, place
from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.broker.knowledge import Correction, GrantedStart, Knowledge
from wms.broker.prediction import LONGEST, Prediction
from wms.broker.waiting_time import START_SECONDS, predict_waiting

HERE = place().place
RUNS = Knowledge(runs_there={HERE: [1000.0] * 20})


def wait(at: Candidate, known: Knowledge = RUNS, of: JobToPlace | None = None) -> Prediction:
    return predict_waiting(of or job(), at, known, NOW).prediction


def test_a_reservation_is_exact_whatever_the_load_is() -> None:
    known = Knowledge(
        reservations={HERE: GrantedStart(start_at=NOW + timedelta(minutes=10))}, waits={HERE: [9e5]}
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
    assert found.seconds == pytest.approx(START_SECONDS + 20 * 1000 / 10)
    assert found.low < found.seconds < found.high


def test_a_wider_job_waits_for_more_slots() -> None:
    at = place(free_slots=1, waiting_jobs=0)
    assert wait(at, of=job(processors=8)).seconds > wait(at).seconds


def test_jobs_that_were_placed_since_the_count_wait_there_too() -> None:
    at = place(free_slots=0, waiting_jobs=4)
    since = Knowledge(runs_there=RUNS.runs_there, placed_since={HERE: 5})
    assert wait(at, since).seconds == pytest.approx(START_SECONDS + 10 * 100)


def test_our_own_waiting_jobs_are_a_queue_whatever_the_element_says() -> None:
    ours = Knowledge(runs_there=RUNS.runs_there, still_waiting={HERE: [60.0] * 30})
    assert wait(place(free_slots=5, waiting_jobs=0), ours).seconds > 1000
    assert wait(place(), ours).source == "queue-model"


def test_a_job_that_waits_longer_than_any_did_tells_of_a_long_wait() -> None:
    known = Knowledge(waits={HERE: [100.0] * 5})
    stuck = Knowledge(waits=known.waits, still_waiting={HERE: [90_000.0] * 6})
    assert wait(place(), stuck).seconds > 10 * wait(place(), known).seconds


def test_the_past_tells_where_the_load_is_unknown() -> None:
    found = wait(place(), Knowledge(waits={HERE: [500.0] * 10 + [1e7]}))
    assert found.seconds == pytest.approx(500)
    assert found.source == "history"


def test_the_past_and_the_load_meet_between() -> None:
    known = Knowledge(runs_there=RUNS.runs_there, waits={HERE: [20_000.0] * 20})
    assert 2000 < wait(place(running_jobs=10, waiting_jobs=19), known).seconds < 20_000


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


def test_an_element_that_errs_by_habit_is_corrected() -> None:
    habit = Correction(low=2.0, median=3.0, high=4.0, count=50)
    known = Knowledge(runs_there=RUNS.runs_there, corrections={("umea", "waiting", "queue-model"): habit})
    plain, mended = (
        wait(place(running_jobs=10, waiting_jobs=19)),
        wait(place(running_jobs=10, waiting_jobs=19), known),
    )
    assert mended.seconds == pytest.approx(3 * (plain.seconds + 30) - 30)
    assert mended.model_seconds == plain.model_seconds


NUMBERS = st.none() | st.integers(0, 10**9)
TIMES = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5)


@given(NUMBERS, NUMBERS, NUMBERS, st.none() | st.floats(allow_nan=True), TIMES, TIMES)
def test_nonsense_is_bounded(free, running, waiting, response, waits, runs) -> None:
    at = place(free_slots=free, running_jobs=running, waiting_jobs=waiting, response_seconds=response)
    found = wait(at, Knowledge(waits={HERE: waits}, runs_there={HERE: runs}))
    assert 0 <= found.low <= found.seconds <= found.high <= LONGEST


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_a_longer_queue_never_waits_shorter(waiting: int, more: int) -> None:
    short, long = (wait(place(running_jobs=10, waiting_jobs=each)) for each in (waiting, waiting + more))
    assert long.seconds >= short.seconds
