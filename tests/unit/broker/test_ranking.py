"""The ranking: by the job's objective, in one order for one input, with reasons for every place."""

from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.examples import NOW, job, place
from wms.broker.job_to_place import JobToPlace, ReferenceRun
from wms.broker.knowledge import GrantedStart, Knowledge
from wms.broker.ranking import Ranking, rank
from wms.matching.clauses import Mismatch

RUN = (ReferenceRun(benchmark="SI00", result=1000, seconds=10_000),)
IDLE_SLOW = place("slow", benchmarks={"specint2000": 500.0}, free_slots=5, waiting_jobs=0)
BUSY_FAST = place("fast", benchmarks={"specint2000": 4000.0}, free_slots=0, waiting_jobs=9)
KNOWN = Knowledge(runs_there={each.place: [1000.0] * 10 for each in (IDLE_SLOW, BUSY_FAST)})


def sites(found: Ranking) -> list[str]:
    return [each.candidate.site for each in found.ranked]


def test_nothing_ranked_has_no_best() -> None:
    assert rank(job(), [], Knowledge(), NOW).best is None


def test_objectives_differ_where_the_idle_one_is_slow() -> None:
    soonest = job(runs=RUN, objective="earliest-start")
    assert sites(rank(job(runs=RUN), [IDLE_SLOW, BUSY_FAST], KNOWN, NOW)) == ["fast", "slow"]
    assert sites(rank(soonest, [IDLE_SLOW, BUSY_FAST], KNOWN, NOW)) == ["slow", "fast"]


def test_a_reservation_changes_the_order() -> None:
    granted = GrantedStart(start_at=NOW + timedelta(hours=9))
    known = Knowledge(runs_there=KNOWN.runs_there, reservations={BUSY_FAST.place: granted})
    found = rank(job(runs=RUN), [IDLE_SLOW, BUSY_FAST], known, NOW)
    assert sites(found) == ["slow", "fast"]
    assert found.ranked[1].time.waiting.source == "reservation"


def test_places_have_numbers_and_reasons() -> None:
    first, second = rank(job(runs=RUN), [IDLE_SLOW, BUSY_FAST], KNOWN, NOW).ranked
    assert (first.rank, second.rank) == (1, 2)
    assert first.reason.startswith("is delivered in ")
    assert "after the first" in second.reason


def test_who_cannot_start_in_time_is_rejected() -> None:
    hurried = job(runs=RUN, latest_start=NOW + timedelta(seconds=120))
    found = rank(hurried, [IDLE_SLOW, BUSY_FAST], KNOWN, NOW)
    assert sites(found) == ["slow"]
    assert [each.clause for each in found.rejected[0].failing] == ["latest start"]


def test_sites_are_asked_for_a_start_whatever_their_queue_behind_those_in_time() -> None:
    """A queue is passed by a reservation; once the sites have answered, the queue counts again."""
    hurried = job(runs=RUN, latest_start=NOW + timedelta(seconds=120))
    reserving = place("fast", benchmarks={"specint2000": 4000.0}, free_slots=0, waiting_jobs=9, reserves=True)
    places = [IDLE_SLOW, reserving]
    asked = rank(hurried, places, KNOWN, NOW, asking=True)
    assert sites(asked) == ["slow", "fast"], "that which needs no grant comes first"
    assert "in time only with a reservation" in asked.ranked[1].reason
    assert sites(rank(hurried, places, KNOWN, NOW)) == ["slow"]
    unreserved = job(runs=RUN, latest_start=hurried.latest_start, wants_reservation=False)
    assert sites(rank(unreserved, places, KNOWN, NOW, asking=True)) == ["slow"]


def test_files_that_come_too_late_come_too_late_in_a_reservation_as_well() -> None:
    hurried = job(stage_in_seconds=600.0, latest_start=NOW + timedelta(seconds=120))
    assert sites(rank(hurried, [place("a", reserves=True)], Knowledge(), NOW, asking=True)) == []


def test_limits_of_the_moment_and_other_selectors_may_be_given() -> None:
    closed = rank(job(), [IDLE_SLOW], KNOWN, NOW, negatives=[lambda *_: Mismatch("limit", "full")])
    assert [each.reasons for each in closed.rejected] == [("limit: full",)]


def test_ties_stand_by_site_and_name_whatever_the_order_of_the_input() -> None:
    twins = [place(site, ce) for site in "cab" for ce in ("y", "x")]
    expected = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("c", "y")]
    for seed in range(5):
        Random(seed).shuffle(twins)
        found = rank(job(), twins, Knowledge(), NOW)
        assert [each.candidate.place for each in found.ranked] == expected


LOADS = st.tuples(st.integers(0, 20), st.integers(0, 50), st.integers(100, 5000))


@given(
    st.lists(LOADS, min_size=1, max_size=8),
    st.sampled_from([job(runs=RUN), job(runs=RUN, objective="earliest-start")]),
)
def test_every_candidate_stands_somewhere_and_the_times_ascend(
    loads: list[tuple[int, int, int]], wanted: JobToPlace
) -> None:
    given_ = [
        place(f"s{n}", free_slots=free, waiting_jobs=waiting, benchmarks={"specint2000": float(speed)})
        for n, (free, waiting, speed) in enumerate(loads)
    ]
    found = rank(wanted, given_, Knowledge(), NOW)
    times = [
        (each.time.start if wanted.objective == "earliest-start" else each.time.delivery).seconds
        for each in found.ranked
    ]
    assert times == sorted(times)
    assert len(found.ranked) + len(found.rejected) == len(given_)
