"""The two selectors and the baselines order as they say."""

from tests.unit.broker.examples import place
from wms.broker.prediction import Prediction
from wms.broker.selectors import earliest_completion, earliest_start, queue_length
from wms.broker.time_to_delivery import DeliveryTime, delivery_time

NOTHING = Prediction.exact(0, "none")


def time(waiting: float, execution: float, spread: float = 0.1) -> DeliveryTime:
    return delivery_time(
        NOTHING,
        Prediction.of(waiting, 0.1, "history"),
        Prediction.of(execution, spread, "benchmark"),
        NOTHING,
    )


def test_the_first_to_start_may_be_the_last_to_end() -> None:
    soon, fast = time(10, 5000), time(1000, 100)
    assert earliest_start(place(), soon) < earliest_start(place(), fast)
    assert earliest_completion(place(), fast) < earliest_completion(place(), soon)


def test_of_equal_times_the_surer_is_first() -> None:
    assert earliest_completion(place(), time(10, 500)) < earliest_completion(place(), time(10, 500, 0.9))


def test_a_queue_is_short_by_its_slots() -> None:
    small, large = place(slots=2, waiting_jobs=4), place(slots=100, waiting_jobs=10)
    assert queue_length(large) < queue_length(small)
    assert queue_length(place(free_slots=5)) < queue_length(place(free_slots=1))


def test_who_tells_no_load_is_last() -> None:
    silent, full = place(), place(waiting_jobs=500, free_slots=0)
    assert queue_length(full) < queue_length(silent)
