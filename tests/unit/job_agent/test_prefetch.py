"""How much work is fetched ahead: what slots of short jobs can take soon, and none behind long ones."""

import pytest

from services.job_agent.prefetch import SlotTime, held_seconds, wanted_seconds


def test_nothing_waits_behind_a_job_of_unknown_length() -> None:
    assert wanted_seconds(1.0, [SlotTime(1, None, age=0.0), SlotTime(1, None, age=900.0)]) == 0


def test_nothing_waits_behind_a_long_job_until_it_ends_soon() -> None:
    assert wanted_seconds(1.0, [SlotTime(1, 10.0, age=3.0)]) == 0
    assert wanted_seconds(1.0, [SlotTime(1, 10.0, age=9.6)]) == pytest.approx(0.6)


def test_slots_of_short_jobs_are_kept_busy() -> None:
    assert wanted_seconds(1.0, [SlotTime(1, 0.25), SlotTime(2, 0.25), SlotTime(1, 60.0)]) == pytest.approx(
        2.25
    )


def test_a_job_that_runs_on_is_taken_for_a_long_one() -> None:
    assert wanted_seconds(1.0, [SlotTime(1, 0.1, age=0.5)]) == pytest.approx(0.5)
    assert wanted_seconds(1.0, [SlotTime(1, 0.1, age=3.0)]) == 0


def test_what_waits_here_counts() -> None:
    assert held_seconds(1.0, [SlotTime(2, 0.25), SlotTime(1, None)]) == pytest.approx(1.5)
