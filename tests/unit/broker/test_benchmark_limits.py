"""Benchmarks beyond all others' are not believed; honest ones stay, and one site with many elements decides nothing."""

from tests.unit.broker.examples import NOW, job, place
from wms.broker.benchmark_limits import FARTHEST, believable
from wms.broker.job_to_place import ReferenceRun
from wms.broker.knowledge import Knowledge
from wms.broker.ranking import rank

HONEST = [place(f"site{n}", benchmarks={"specint2000": 1000.0 + 100 * n}) for n in range(4)]
LIAR = place("liar", benchmarks={"specint2000": 1e9})


def test_a_lie_is_bounded_and_the_truth_stays() -> None:
    *honest, liar = believable([*HONEST, LIAR])
    assert honest == HONEST
    assert liar.benchmarks == {"specint2000": 1200.0 * FARTHEST}
    assert liar.element == LIAR.element


def test_one_site_cannot_move_what_is_usual_by_many_elements() -> None:
    many = [place("liar", f"ce{n}", benchmarks={"specint2000": 1e9}) for n in range(50)]
    found = believable([*HONEST, *many])
    assert {each.benchmarks["specint2000"] for each in found[4:]} == {1200.0 * FARTHEST}


def test_of_two_sites_nobody_can_tell_who_lies() -> None:
    two = [HONEST[0], LIAR]
    assert believable(two) == two


def test_a_liar_loses_its_jobs_to_a_free_site_as_its_queue_grows() -> None:
    fair = [place(each.site, benchmarks=each.benchmarks, free_slots=5, waiting_jobs=0) for each in HONEST]
    liar = place("liar", benchmarks={"specint2000": 1e9}, free_slots=0, waiting_jobs=0)
    wanted = job(runs=(ReferenceRun(benchmark="SI00", result=1000, seconds=3600),))

    def best(placed: int) -> str:
        known = Knowledge(placed_since={liar.place: placed})
        found = rank(wanted, [*fair, liar], known, NOW).best
        assert found is not None
        return found.candidate.site

    assert best(50) == "site3"
