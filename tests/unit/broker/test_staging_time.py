"""Stage-in and stage-out: sizes over measured bandwidth, the nearest replica, and the user's figure as the last resort."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.broker.examples import job, place
from wms.broker.job_to_place import FileToMove
from wms.broker.knowledge import Knowledge, MeasuredTransfer
from wms.broker.prediction import LONGEST
from wms.broker.staging_time import PER_FILE, predict_stage_in, predict_stage_out, replica_order

GB = 1_000_000_000
FAR, NEAR = "https://se.far.example/a", "https://se.umea.example/a"


def measured(host: str, rate: float, times: int = 10) -> list[MeasuredTransfer]:
    return [MeasuredTransfer(host=host, size=GB, seconds=GB / rate)] * times


def test_a_job_without_files_takes_no_time() -> None:
    found = predict_stage_in(job(), place(), Knowledge()).prediction
    assert (found.seconds, found.low, found.high) == (0, 0, 0)


def test_the_size_over_the_bandwidth_of_the_way() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=(FAR,), size=GB),))
    known = Knowledge(arriving={"umea": measured("se.far.example", 5e6) + measured("se.else.example", 5e8)})
    found = predict_stage_in(wanted, place(), known).prediction
    assert found.seconds == pytest.approx(PER_FILE + 200)
    assert found.source == "replicas"


def test_the_replica_that_arrives_first_counts() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=(FAR, NEAR), size=GB),))
    known = Knowledge(arriving={"umea": measured("se.far.example", 5e6) + measured("se.umea.example", 1e8)})
    assert predict_stage_in(wanted, place(), known).prediction.seconds == pytest.approx(PER_FILE + 10)


def test_replicas_are_fetched_in_the_order_that_was_predicted() -> None:
    """Both measured: the first listed is the slower one."""
    slow, fast, unknown = (f"https://se.{name}.example/a" for name in ("slow", "fast", "unknown"))
    wanted = job(
        inputs=(FileToMove(name="a", urls=(slow, fast), size=GB), FileToMove(name="b", urls=(unknown,)))
    )
    known = Knowledge(arriving={"umea": measured("se.slow.example", 5e5) + measured("se.fast.example", 5e6)})
    assert replica_order(wanted, place(), known) == ("se.fast.example", "se.slow.example")
    assert replica_order(job(inputs=(FileToMove(name="b", urls=(unknown,)),)), place(), known) == ()


def test_storage_nearby_is_taken_to_be_fast() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=(NEAR,), size=GB),))
    near, far = (
        predict_stage_in(wanted, place(near_storage=each), Knowledge()).prediction
        for each in (("se.umea.example",), ())
    )
    assert near.seconds < far.seconds


def test_what_storage_tells_overrules_the_users_size() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=(FAR,), size=1),))
    known = Knowledge(sizes={FAR: 2 * GB}, arriving={"umea": measured("se.far.example", 1e7)})
    assert predict_stage_in(wanted, place(), known).prediction.seconds == pytest.approx(PER_FILE + 200)


def test_the_users_figure_is_the_last_resort() -> None:
    wanted = job(outputs=(FileToMove(name="out", urls=(FAR,)),), stage_out_seconds=600.0)
    found = predict_stage_out(wanted, place(), Knowledge())
    assert found.prediction.seconds == pytest.approx(600)
    assert found.prediction.source == "user"
    assert found.remarks == ("size or bandwidth unknown of out",)


def test_an_output_goes_to_each_of_its_targets() -> None:
    known = Knowledge(leaving={"umea": measured("se.far.example", 1e7)})
    out = FileToMove(name="out", urls=(FAR,), size=GB)
    one, two = (job(outputs=(replace(out, urls=(FAR,) * times),)) for times in (1, 2))
    seconds = [predict_stage_out(each, place(), known).prediction.seconds for each in (one, two)]
    assert seconds == pytest.approx([PER_FILE + 100, 2 * (PER_FILE + 100)])


def test_without_it_a_guess_is_wide() -> None:
    wanted = job(outputs=(FileToMove(name="out", urls=(FAR,)),))
    found = predict_stage_out(wanted, place(), Knowledge()).prediction
    assert found.source == "none"
    assert found.high > 3 * found.seconds


ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(st.integers(0, 2**60), ANY), max_size=5),
    st.none() | ANY,
    st.none() | st.integers(0, 2**60),
)
def test_nonsense_is_bounded(transfers, users, size) -> None:
    samples = [MeasuredTransfer(size=each, seconds=seconds) for each, seconds in transfers]
    wanted = job(inputs=(FileToMove(name="a", urls=(FAR,), size=size),), stage_in_seconds=users)
    found = predict_stage_in(wanted, place(), Knowledge(arriving={"umea": samples})).prediction
    assert 0 <= found.low <= found.seconds <= found.high <= LONGEST
