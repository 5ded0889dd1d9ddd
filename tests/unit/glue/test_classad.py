"""Ads of computing elements as text: one as gLite published them, any that is written here, and hostile ones."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.unit.glue.strategies import elements
from wms.errors import Rejected
from wms.glue.ad import GlueAd
from wms.glue.classad import read_attributes, read_classad, write_classad
from wms.glue.glue1 import GlueComputingElement, StorageBinding
from wms.glue.quantity import UNLIMITED

GLITE = (Path(__file__).parents[2] / "data" / "glue" / "glite.ad").read_text()
AT = datetime(2005, 10, 3, 15, 4, 42, tzinfo=UTC)


def test_an_ad_of_glite_is_read():
    ad = read_classad(GLITE)
    element = ad.element
    assert (ad.updated_at, ad.lifetime_seconds) == (AT, 300)
    assert (element.id, element.name, element.lrms_type) == (
        "ce.example.org:2119/blah-pbs-long",
        "infinite",
        "pbs",
    )
    assert (element.max_wall_seconds, element.max_cpu_seconds) == (172_800, 86_400), (
        "its minutes are seconds here"
    )
    assert element.max_running_jobs is element.max_total_jobs is UNLIMITED
    assert (element.free_cpus, element.running_jobs, element.access_rules) == (1, 0, ("VO:EGEE",))
    assert (element.hosts.si00, element.hosts.outbound, element.hosts.inbound) == (400, True, False)
    assert element.storage == (StorageBinding(storage_element="se.example.org", mount_point="/mn/SE2"),)


def test_its_expressions_are_texts_and_what_is_undefined_is_not_there():
    info = read_attributes(GLITE).values["info"]
    assert info["CloseOutputSECheck"] == (
        "isUndefined(other.OutputSE) || member(other.OutputSE, GlueCESEBindGroupSEUniqueID)"
    )
    assert '|| member(strcat("VO:", other.VirtualOrganisation), ' in info["AuthorizationCheck"]
    assert info["GlueInformationServiceURL"] == []


def test_what_is_in_quotes_is_left_as_it_is():
    found = read_attributes('[ a = strcat("x  ,\t;]",  b); c = "\\"a;\\\\"; d = 1.5e3; e = -7 ]')
    assert found.expressions == {"a": 'strcat("x  ,\\t;]", b)'}
    assert found.values == {"c": '"a;\\', "d": 1500.0, "e": -7}


def test_it_is_written_and_read_as_the_same():
    ad = read_classad(GLITE)
    written = write_classad(ad)
    assert read_classad(written) == ad
    assert written.startswith(
        '[id = "ce.example.org:2119/blah-pbs-long"; update_time = 1128351882; expiry_time = 300;'
    )
    assert "AuthorizationCheck = member(other.CertificateSubject, GlueCEAccessControlBaseRule) ||" in written


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(elements())
def test_any_ad_is_written_and_read_as_the_same(element: GlueComputingElement):
    ad = GlueAd(element=element, updated_at=AT, lifetime_seconds=600)
    assert read_classad(write_classad(ad)) == ad


def test_an_ad_need_not_be_wrapped():
    element = read_classad('[ GlueCEUniqueID = "x"; GlueCEStateFreeCPUs = 7 ]').element
    assert (element.id, element.free_cpus) == ("x", 7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[ a = 1 ] junk",
        '[ GlueCEUniqueID = "x ]',
        "[ a = f(1]; ]",
        "[ a = ; ]",
        "[ a = " + "{" * 100 + "}" * 100 + "]",
        "[ a = " * 100 + "]" * 100,
        "[" + " " * (1 << 20) + "]",
        "[ a = 1 ]",
    ],
)
def test_what_is_no_ad_is_refused(text: str):
    with pytest.raises(Rejected):
        read_classad(text)
