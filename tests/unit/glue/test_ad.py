"""The ad of a computing element, between GLUE 1.x and what the matcher sees."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.unit.glue.published import bdii
from tests.unit.glue.strategies import elements
from wms.errors import Rejected
from wms.glue import ad, glue1
from wms.glue.quantity import UNKNOWN


def test_the_ad_tells_minutes_and_leaves_out_what_is_not_known():
    said = ad.attributes(bdii())
    assert (said["GlueCEPolicyMaxWallClockTime"], said["GlueCEPolicyMaxCPUTime"]) == (4320, 2880)
    assert (said["QueueName"], said["CEid"]) == ("long", "ce.example.org:8443/cream-pbs-long")
    assert said["CloseStorageElements"] == [{"name": "se.example.org"}]
    assert not said.keys() & {"GlueCEStateWaitingJobs", "GlueCEPolicyMaxRunningJobs"}


def test_a_benchmark_that_is_published_as_0_is_seen_as_0_and_read_as_unknown():
    ce, hosts = {"GlueCEUniqueID": ["a"]}, {"GlueHostBenchmarkSI00": ["0"], "GlueHostBenchmarkSF00": ["1200"]}
    element = glue1.element(ce, hosts, ())
    assert element.hosts.si00 is UNKNOWN
    for each in (element, ad.element_of(ad.matchable(element))):
        said = ad.matchable(each)
        assert (said["GlueHostBenchmarkSI00"], said["GlueHostBenchmarkSF00"]) == (0, 1200)
    assert "GlueHostMainMemoryRAMSize" not in ad.matchable(element), "nobody said it"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(elements())
def test_an_element_is_read_from_its_ad_as_the_same(element: glue1.GlueComputingElement):
    assert ad.element_of(ad.attributes(element)) == element


def test_an_ad_without_identifier_is_refused():
    with pytest.raises(Rejected):
        ad.element_of({"GlueCEName": "long"})
