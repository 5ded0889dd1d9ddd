"""Execution: benchmarks scale the user's figures; measured run times of the class correct them, whatever outliers say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.examples import job, place
from wms.broker.candidate import Candidate
from wms.broker.execution_time import predict_execution, scaled_times
from wms.broker.job_to_place import JobToPlace, ReferenceRun
from wms.broker.knowledge import Knowledge, MeasuredRun
from wms.broker.prediction import LONGEST, Predicted
from wms.ids import CeId

LU = ReferenceRun(benchmark="nas-lu-c", result=450, seconds=3600)
FP = ReferenceRun(benchmark="specFP2000", result=1750, seconds=2700)
HERE, THERE = CeId("umea", "batch"), CeId("lund", "batch")


def predicted(of: JobToPlace, at: Candidate, known: Knowledge | None = None, **speeds: Any) -> Predicted:
    all_speeds = {at.place: at.benchmarks} | {CeId(site, "batch"): each for site, each in speeds.items()}
    return predict_execution(of, at, known or Knowledge(), all_speeds)


def runs(place: CeId, *seconds: float) -> list[MeasuredRun]:
    return [MeasuredRun(place=place, seconds=each) for each in seconds]


def test_time_is_in_inverse_proportion_to_a_benchmark() -> None:
    found = predicted(job(runs=(FP,)), place(benchmarks={"specfp2000": 875.0})).prediction
    assert found.seconds == pytest.approx(5400)
    assert found.source == "benchmark"


def test_of_several_benchmarks_the_geometric_mean_is_taken() -> None:
    wanted, at = job(runs=(LU, FP)), place(benchmarks={"nasluc": 900.0, "specfp2000": 1750.0})
    assert scaled_times(wanted, at.benchmarks) == pytest.approx([1800, 2700])
    assert predicted(wanted, at).prediction.seconds == pytest.approx((1800 * 2700) ** 0.5)


def test_benchmarks_that_disagree_widen_the_interval() -> None:
    wanted = job(runs=(LU, FP))
    close = predicted(wanted, place(benchmarks={"nasluc": 450.0, "specfp2000": 1312.5})).prediction
    apart = predicted(wanted, place(benchmarks={"nasluc": 900.0, "specfp2000": 656.25})).prediction
    assert close.seconds == pytest.approx(apart.seconds)
    assert apart.high > close.high


def test_a_benchmark_that_is_not_told_is_left_out_and_it_is_said() -> None:
    found = predicted(job(runs=(LU, FP)), place(benchmarks={"specfp2000": 1750.0}))
    assert found.prediction.seconds == pytest.approx(2700)
    assert found.remarks == ("batch does not tell its nas-lu-c",)


def test_without_any_the_users_time_stands_unscaled() -> None:
    found = predicted(job(runs=(LU,)), place())
    assert found.prediction.seconds == pytest.approx(3600)
    assert found.prediction.source == "user"


def test_without_anything_it_is_a_part_of_the_limit() -> None:
    found = predicted(job(wall_seconds=10_000.0), place()).prediction
    assert found.source == "none"
    assert found.seconds < found.high <= 10_000


def test_measured_times_of_the_class_overrule_a_wrong_benchmark() -> None:
    wanted = job(runs=(FP,), job_class="sim")
    known = Knowledge(class_runs={"sim": runs(HERE, *[9000.0] * 30)})
    found = predicted(wanted, place(benchmarks={"specfp2000": 1750.0}), known).prediction
    assert found.source == "history"
    assert 8000 < found.seconds <= 9000


def test_outliers_move_nothing() -> None:
    steady = runs(HERE, *[1000.0] * 30)
    wild = [*steady, *runs(HERE, 1e9, float("nan"), float("inf"), -5.0)]
    one, other = (
        predicted(job(job_class="sim"), place(), Knowledge(class_runs={"sim": each})).prediction
        for each in (steady, wild)
    )
    assert other.seconds == pytest.approx(one.seconds, rel=0.01)


def test_times_from_elsewhere_are_scaled_by_what_both_have() -> None:
    known = Knowledge(class_runs={"sim": runs(THERE, *[1000.0] * 30)})
    fast = place(benchmarks={"hepspec06": 20.0})
    found = predicted(job(job_class="sim"), fast, known, lund={"hepspec06": 10.0}).prediction
    assert found.seconds == pytest.approx(500)
    assert predicted(job(job_class="sim"), fast, known).prediction.seconds == pytest.approx(1000)


RESULTS = st.floats(1, 1e6)
MEASURED = st.lists(st.tuples(st.sampled_from([HERE, THERE]), st.floats(1, 1e6)), max_size=8)


@given(RESULTS, st.floats(1, 1e3), RESULTS, MEASURED, st.sampled_from(["nasluc", "specfp2000"]))
def test_a_faster_benchmark_never_predicts_longer(slow, times, other, measured, name) -> None:
    known = Knowledge(class_runs={"sim": [MeasuredRun(place=at, seconds=each) for at, each in measured]})
    wanted = job(runs=(LU, FP), job_class="sim", wall_seconds=1e6)
    results = {"nasluc": other, "specfp2000": other}
    one, two = (
        predicted(wanted, place(benchmarks=results | {name: each}), known, lund={"nasluc": 300.0}).prediction
        for each in (slow, slow * times)
    )
    assert two.seconds <= one.seconds * (1 + 1e-9)


ANY = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1e308, 5e-324])


@given(ANY, ANY, ANY, st.lists(ANY, max_size=4))
def test_nonsense_is_bounded(result, seconds, here, measured) -> None:
    wanted = job(runs=(ReferenceRun(benchmark="x", result=result, seconds=seconds),), job_class="sim")
    known = Knowledge(class_runs={"sim": runs(HERE, *measured)})
    found = predicted(wanted, place(benchmarks={"x": here}), known).prediction
    assert 0 <= found.low <= found.seconds <= found.high <= LONGEST
