"""The two selectors and the baselines order as they say."""

from random import Random

from tests.unit.broker.examples import place
from wms.broker.prediction import Prediction
from wms.broker.selectors import earliest_completion, earliest_start, random_choice, shortest_queue
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
    assert shortest_queue(large, time(0, 0)) < shortest_queue(small, time(0, 0))
    assert shortest_queue(place(free_slots=5), time(0, 0)) < shortest_queue(place(free_slots=1), time(0, 0))


def test_who_tells_no_load_is_last() -> None:
    silent, full = place(), place(waiting_jobs=500, free_slots=0)
    assert shortest_queue(full, time(0, 0)) < shortest_queue(silent, time(0, 0))


def test_chance_is_that_of_its_generator() -> None:
    one, other = (random_choice(Random(7).random) for _ in range(2))
    assert [one(place(), time(0, 0)) for _ in range(5)] == [other(place(), time(0, 0)) for _ in range(5)]
