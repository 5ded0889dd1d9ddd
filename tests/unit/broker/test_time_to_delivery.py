"""The parts make the start and the whole; inputs that arrive while the job waits cost no time of their own."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.broker.examples import job, place
from wms.broker.job_to_place import FileToMove
from wms.broker.knowledge import Knowledge
from wms.broker.prediction import Prediction
from wms.broker.time_to_delivery import delivery_time, later, predict_delivery


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


def test_files_that_a_pilot_fetches_in_its_reservation_delay_its_program() -> None:
    parts = [Prediction.exact(seconds, "reservation") for seconds in (73, 60, 60, 30)]
    found = delivery_time(*parts)
    assert found.start.seconds == pytest.approx(133)
    assert found.delivery.seconds == pytest.approx(223)


def test_a_program_waits_for_its_earliest_start_with_its_files_there() -> None:
    """The reservation begins as long before as the files take."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    wanted = job(
        stage_in_seconds=41.0,
        inputs=(FileToMove(name="a", urls=("https://se.example/a",)),),
        earliest_start=now + timedelta(hours=1),
    )
    reserving = predict_delivery(wanted, place(reserves=True), Knowledge(), now, {})
    assert reserving.start.seconds == pytest.approx(3_600)
    plain = predict_delivery(wanted, place(), Knowledge(), now, {})
    assert plain.start.seconds >= 3_600 + 41


def test_the_later_of_two_is_no_earlier_than_either() -> None:
    one, other = Prediction.of(100, 1.0, "user"), Prediction.of(120, 0.1, "replicas")
    found = later(one, other)
    assert (found.low, found.high) == (other.low, one.high)
