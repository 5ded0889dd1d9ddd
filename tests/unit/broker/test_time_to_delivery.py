"""The parts make the start and the whole; inputs that arrive while the job waits cost no time of their own."""

import pytest

from wms.broker.prediction import Prediction
from wms.broker.time_to_delivery import delivery_time, later


def test_the_whole_is_the_sum_of_its_parts() -> None:
    four = [Prediction.of(seconds, 0.2, "history") for seconds in (100, 200, 3000, 50)]
    found = delivery_time(*four)
    assert found.start.seconds == pytest.approx(300)
    assert found.delivery.seconds == pytest.approx(3350)
    assert found.delivery.low < 3350 < found.delivery.high


def test_staging_ahead_hides_behind_the_wait() -> None:
    stage_in, waiting = Prediction.exact(100, "replicas"), Prediction.exact(200, "reservation")
    nothing = Prediction.exact(0, "none")
    found = delivery_time(stage_in, waiting, nothing, nothing, stages_ahead=True)
    assert found.start.seconds == pytest.approx(200)
    assert found.start.source == "reservation"


def test_the_later_of_two_is_no_earlier_than_either() -> None:
    one, other = Prediction.of(100, 1.0, "user"), Prediction.of(120, 0.1, "replicas")
    found = later(one, other)
    assert (found.low, found.high) == (other.low, one.high)
