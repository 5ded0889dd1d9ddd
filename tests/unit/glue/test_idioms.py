"""What users of gLite write in their requirements and ranks, over numbers as sites publish them: as gLite had it."""

import pytest

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate
from wms.errors import Rejected
from wms.glue import ad, glue1
from wms.glue.offer import offered
from wms.glue.quantity import UNKNOWN
from wms.matching.ads import resource_sketch
from wms.site import ComputingElement as Offer
from wms.site import with_ad

IDIOMS = (
    "other.GlueCEPolicyMaxCPUTime >= 720 || other.GlueCEPolicyMaxCPUTime == 0",
    "other.GlueCEPolicyMaxWallClockTime > 1440 || other.GlueCEPolicyMaxWallClockTime == 0",
    "other.GlueCEPolicyMaxCPUTime > 2880",
    "!(other.GlueCEPolicyMaxWallClockTime < 60)",
    "other.GlueCEPolicyMaxObtainableCPUTime >= 720",
    "other.GlueCEStateWaitingJobs < 100",
    "other.GlueCEStateRunningJobs < other.GlueCEPolicyMaxRunningJobs || other.GlueCEPolicyMaxRunningJobs == 0",
    "other.GlueCEStateTotalJobs < other.GlueCEPolicyMaxTotalJobs",
    "other.GlueCEStateEstimatedResponseTime < 3600",
    "-other.GlueCEStateEstimatedResponseTime",
    "other.GlueCEStateFreeCPUs > 0 || other.GlueCEStateWaitingJobs == 0",
    "other.GlueCEStateWaitingJobs == 0 ? other.GlueCEStateFreeCPUs : -other.GlueCEStateWaitingJobs * 4",
)
STATIC = {
    "GlueCEPolicyMaxCPUTime": 999_999_999,
    "GlueCEPolicyMaxWallClockTime": 0,
    "GlueCEPolicyMaxObtainableCPUTime": 999_999_999,
    "GlueCEPolicyMaxRunningJobs": 0,
    "GlueCEPolicyMaxTotalJobs": 999_999_999,
    "GlueCEStateWaitingJobs": 444_444,
    "GlueCEStateRunningJobs": 0,
    "GlueCEStateTotalJobs": 0,
    "GlueCEStateFreeCPUs": 0,
    "GlueCEStateEstimatedResponseTime": 2_146_660_842,
}
DYNAMIC = {
    "GlueCEPolicyMaxCPUTime": 2_880,
    "GlueCEPolicyMaxWallClockTime": 4_320,
    "GlueCEPolicyMaxObtainableCPUTime": -1,
    "GlueCEPolicyMaxRunningJobs": 99_999,
    "GlueCEPolicyMaxTotalJobs": 999_999,
    "GlueCEStateWaitingJobs": 12,
    "GlueCEStateRunningJobs": 88,
    "GlueCEStateTotalJobs": 100,
    "GlueCEStateFreeCPUs": 3,
    "GlueCEStateEstimatedResponseTime": 1_200,
}


def element(published: dict[str, int]) -> glue1.GlueComputingElement:
    texts = {name: [str(value)] for name, value in published.items()}
    return glue1.element({"GlueCEUniqueID": ["ce/queue"], **texts}, {}, [])


@pytest.mark.parametrize("published", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_of_glite_has_the_value_that_it_had_there(idiom: str, published: dict[str, int]) -> None:
    ours = Ad.of(ad.matchable(element(published)))
    theirs = Ad.of(dict(published))
    expression = Expression.parse(idiom)
    assert evaluate(expression, ours) == evaluate(expression, theirs)


def test_a_number_that_is_none_stays_none_to_whoever_plans() -> None:
    read = element(STATIC)
    assert (
        read.max_cpu_seconds is read.max_wall_seconds is read.waiting_jobs is read.max_running_jobs is UNKNOWN
    )
    with pytest.raises(Rejected):
        offered(read, Offer(site="s", ce="c", slots=4, max_cpu_time=0))


def test_who_reads_the_ad_again_knows_as_little() -> None:
    read = ad.element_of({"GlueCEUniqueID": "ce/queue", **ad.matchable(element(STATIC))})
    assert (read.max_cpu_seconds, read.waiting_jobs, read.max_wall_seconds) == (UNKNOWN,) * 3
    nothing = ad.element_of({"GlueCEUniqueID": "ce/queue", **ad.matchable(element({}))})
    assert nothing.max_cpu_seconds is nothing.waiting_jobs is nothing.estimated_response_seconds is UNKNOWN
    assert nothing.running_jobs is nothing.free_cpus is UNKNOWN, "no number is made up that could be one"


def test_what_the_ad_does_not_know_the_batch_system_is_still_asked_for() -> None:
    text = Ad.of(ad.matchable(element({}))).text
    offer = Offer(site="s", ce="c", slots=4, max_cpu_time=600)
    resource = with_ad(offer.pilot_resource(vo="v"), text, ("gluehostmainmemoryramsize",))
    sketch = resource_sketch(resource)
    assert sketch is not None
    assert "gluecepolicymaxwallclocktime" in sketch.free
