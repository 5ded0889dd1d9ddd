"""What a trace becomes: who, where, when and how long."""

import pytest

from tests.unit.replay.test_swf import line
from wms.ids import Identity
from wms.jobdesc.validation import validate
from wms.matching.clauses import fits
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.matching.requirements import requirements_of
from wms.replay import swf
from wms.replay.plan import TAG, TracePlan, plan_of

HEAD = ["; Partition: 1 one.org", "; Partition: 2 two.org", "; Partition: 3 three.org"]


def planned(*lines: str, speedup: float = 10, slots: int = 4, sites_limit: int | None = None) -> TracePlan:
    return plan_of(swf.read([*HEAD, *lines], 100), speedup=speedup, slots=slots, sites_limit=sites_limit)


def test_times_are_divided_and_counted_from_the_first() -> None:
    plan = planned(line(1, 100, run=50), line(2, 160, run=-1))
    assert [(job.due, job.seconds) for job in plan.jobs] == [(0.0, 5.0), (6.0, 0.0)]
    assert plan.jobs[0].description.arguments == ("5",)


def test_user_group_and_partition_are_owner_vo_and_site() -> None:
    (job,) = planned(line(1, 0, part=2)).jobs
    assert job.identity == Identity("user7", "group2", "vo2")
    assert (job.site, job.description.sites) == ("two.org", ("two.org",))


def test_what_is_not_known_goes_anywhere() -> None:
    plan = planned(line(1, 0, part=-1), line(2, 0, part=1))
    assert [job.site for job in plan.jobs] == ["", "one.org"]
    assert [element.site for element in plan.elements] == ["anywhere", "one.org"]


@pytest.mark.parametrize(("asked", "given"), [(-1, 1), (3, 3), (400, 4)])
def test_processors_are_at_most_a_pilots(asked: int, given: int) -> None:
    assert planned(line(1, 0, asked=asked)).jobs[0].description.processors == given


def test_sites_over_the_limit_are_folded_into_the_busiest() -> None:
    plan = planned(*(line(n, n, part=part) for n, part in enumerate((1, 2, 3, 3, 2, 3))), sites_limit=2)
    assert [job.site for job in plan.jobs] == [
        "three.org",
        "two.org",
        "three.org",
        "three.org",
        "two.org",
        "three.org",
    ]
    assert [element.site for element in plan.elements] == ["three.org", "two.org"]


def test_every_job_is_valid_and_fits_its_site_and_no_untagged_job_does() -> None:
    plan = planned(*(line(n, n, part=n % 3 + 1, cpus=n, run=10**n) for n in range(1, 7)))
    pilots = {(e.site, vo): e.pilot_resource(vo=vo) for e in plan.elements for vo in e.vos}
    for job in plan.jobs:
        assert validate(job.description) == []
        who = job.identity
        required = requirements_of(job.description, who.owner, who.group, who.vo, DEFAULT_SEGMENTS)
        assert fits(required, pilots[job.site, who.vo]) is None
    assert all(element.fault() is None and element.required_tags == (TAG,) for element in plan.elements)
