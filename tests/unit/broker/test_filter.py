"""Candidates where the job cannot run are rejected with every reason, and a job that cannot be brokered with every fault."""

from tests.unit.broker.examples import element, job, place, requirements
from wms.broker.filter import filter_candidates
from wms.broker.job_to_place import FileToMove
from wms.broker.knowledge import Knowledge
from wms.matching.clauses import Mismatch


def test_every_clause_that_fails_is_told() -> None:
    wanted = job(requirements=requirements(min_ram_mb=4000, sites=("lund",)))
    fitting, rejected = filter_candidates(wanted, [place()], Knowledge())
    assert fitting == ()
    assert [each.clause for each in rejected[0].failing] == ["memory", "site"]
    assert rejected[0].reasons[0].startswith("memory: the job needs 4000 MB")


def test_the_tag_of_a_bound_job_is_no_obstacle() -> None:
    wanted = job(requirements=requirements(tags=("job:17",)))
    assert len(filter_candidates(wanted, [place()], Knowledge()).fitting) == 1


def test_an_element_without_slots_for_it_is_rejected() -> None:
    found = filter_candidates(job(processors=4), [place(slots=0), place("lund", slots=4)], Knowledge())
    assert [each.site for each in found.fitting] == ["lund"]
    assert [each.reasons for each in found.rejected] == [("slots: the job needs 4, batch offers 0",)]


def test_candidates_come_in_one_order_and_once() -> None:
    given = [place("b"), place("a", "z"), place("a", "y"), place("b", slots=3)]
    found = filter_candidates(job(), given, Knowledge()).fitting
    assert [(each.site, each.ce) for each in found] == [("a", "y"), ("a", "z"), ("b", "batch")]
    assert found[-1].slots == 10


def test_limits_of_the_moment_reject_what_fits() -> None:
    found = filter_candidates(job(), [place()], Knowledge(), [lambda *_: Mismatch("limit", "10 jobs run")])
    assert found.rejected[0].reasons == ("limit: 10 jobs run",)


def test_input_data_restrict_sites_to_those_that_have_all() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=("lfn:/a",)), FileToMove(name="b", urls=("lfn:/b",))))
    known = Knowledge(replica_sites={"lfn:/a": frozenset({"umea", "lund"}), "lfn:/b": frozenset({"lund"})})
    found = filter_candidates(wanted, [place(), place("lund")], known)
    assert [each.site for each in found.fitting] == ["lund"]
    assert found.rejected[0].reasons == ("input data: umea has no replica of b",)


def test_a_faulty_ad_fits_nothing() -> None:
    faulty = place(element=element(slots_per_pilot=0))
    assert filter_candidates(job(), [faulty], Knowledge()).fitting == ()
