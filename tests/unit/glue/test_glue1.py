"""GLUE 1.x, between it and GLUE 2.0, and between it and what the matcher knows of a site."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from tests.unit.glue.strategies import elements
from tests.unit.glue.test_glue2 import arc
from wms.errors import Rejected
from wms.glue import ad, glue1, ldif, offer, versions
from wms.glue.quantity import UNKNOWN, UNLIMITED
from wms.site import ComputingElement as Offer

DATA = Path(__file__).parents[2] / "data" / "glue"
STATED = Offer(site="EXAMPLE-T2", ce="long", slots=0, max_cpu_time=0, cores_per_pilot=8, slots_per_pilot=8)


def bdii() -> glue1.GlueComputingElement:
    """Return the one element of a site of a BDII."""
    [element] = ldif.glue1_elements(ldif.read_ldif((DATA / "bdii.ldif").read_bytes())[0])
    return element


def test_an_element_of_a_bdii_is_read_with_its_hosts_and_storage():
    element = bdii()
    assert (element.name, element.site, element.lrms_type) == ("long", "EXAMPLE-T2", "torque")
    assert element.hosts.applications == ("VO-lhcb-2", "MPI-START")
    assert (element.hosts.memory_mb, element.hosts.hepspec06) == (98_304, 10.48)
    assert element.storage == (glue1.StorageBinding(storage_element="se.example.org"),)


def test_its_minutes_are_seconds_and_its_placeholders_no_numbers():
    element = bdii()
    assert (element.max_wall_seconds, element.max_cpu_seconds) == (4320 * 60, 2880 * 60)
    assert element.waiting_jobs is element.estimated_response_seconds is UNKNOWN
    assert element.max_running_jobs is element.max_total_jobs is UNKNOWN


def test_the_ad_tells_minutes_and_leaves_out_what_is_not_known():
    said = ad.attributes(bdii())
    assert (said["GlueCEPolicyMaxWallClockTime"], said["GlueCEPolicyMaxCPUTime"]) == (4320, 2880)
    assert (said["QueueName"], said["CEid"]) == ("long", "ce.example.org:8443/cream-pbs-long")
    assert said["CloseStorageElements"] == [{"name": "se.example.org"}]
    assert not said.keys() & {"GlueCEStateWaitingJobs", "GlueCEPolicyMaxRunningJobs"}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(elements())
def test_an_element_is_read_from_its_ad_as_the_same(element: glue1.GlueComputingElement):
    assert ad.element_of(ad.attributes(element)) == element


def test_an_ad_without_identifier_is_refused():
    with pytest.raises(Rejected):
        ad.element_of({"GlueCEName": "long"})


def test_the_queues_of_a_service_become_elements_whose_slots_are_counted_once():
    main, short = versions.elements(arc())
    assert (main.name, short.name) == ("main", "short")
    assert (main.total_cpus, main.free_job_slots, main.hosts.logical_cpus) == (320, 312, 320)
    assert (main.max_wall_seconds, short.max_wall_seconds) == (604_800, 1_800)
    assert main.access_rules == short.access_rules == ("VO:celab",)
    assert main.contact == "https://localhost:18443/arex"
    assert main.hosts.hepspec06 is None, "1.0 is what stands where nobody measured"


def test_an_element_survives_the_way_to_glue_2_and_back():
    element = replace(bdii(), status="Draining", max_slots_per_job=UNLIMITED)
    [back] = versions.elements(versions.service([element]))
    for field in (
        "name",
        "status",
        "max_wall_seconds",
        "max_cpu_seconds",
        "max_slots_per_job",
        "running_jobs",
    ):
        assert getattr(back, field) == getattr(element, field), field
    assert back.total_cpus == 96
    assert back.waiting_jobs is UNKNOWN
    assert back.access_rules == element.access_rules
    assert back.storage == element.storage
    assert back.hosts.hepspec06 == 10.48
    assert (back.hosts.smp_size, back.hosts.memory_mb, back.hosts.logical_cpus) == (24, 98_304, 96)
    assert set(back.hosts.applications) == set(element.hosts.applications)


def test_an_offer_takes_from_the_queue_what_was_not_stated():
    offered = offer.offered(bdii(), STATED)
    assert offered.fault() is None
    assert (offered.slots, offered.max_cpu_time, offered.cores) == (96, 2880 * 60, 24)
    assert offered.memory_mb == 98_304 * 8 // 24
    assert offered.vos == ("atlas", "lhcb")
    assert offered.tags == ("MPI-START", "VO-lhcb-2")
    assert offered.platforms == ("Linux-x86_64", "Linux-x86_64-CentOS-7.9")


def test_what_the_site_states_goes_before_what_the_queue_says():
    stated = replace(STATED, slots=10, max_cpu_time=600, vos=("lhcb",), platforms=("Linux-ppc",), memory_mb=1)
    offered = offer.offered(bdii(), stated)
    assert (offered.slots, offered.max_cpu_time, offered.vos) == (10, 600, ("lhcb",))
    assert (offered.platforms, offered.memory_mb) == (("Linux-ppc",), 1)


@pytest.mark.parametrize("status", ["Draining", "Closed"])
def test_a_queue_that_takes_no_jobs_offers_no_slots(status: str):
    assert offer.offered(replace(bdii(), status=status), replace(STATED, slots=10)).slots == 0


@pytest.mark.parametrize(
    ("element", "key"),
    [
        (replace(bdii(), max_wall_seconds=UNKNOWN, max_cpu_seconds=UNLIMITED), "max_cpu_time"),
        (replace(bdii(), total_cpus=UNKNOWN, hosts=glue1.GlueHosts()), "slots"),
        (replace(bdii(), access_rules=("/DC=org/CN=Alice",)), "vos"),
    ],
)
def test_what_neither_says_is_asked_of_the_configuration(element: glue1.GlueComputingElement, key: str):
    with pytest.raises(Rejected, match="GLUE_INCOMPLETE") as refused:
        offer.offered(element, STATED)
    assert f"`{key}`" in refused.value.remedy


def test_an_offer_described_in_glue_makes_the_same_offer():
    given_offer = replace(
        STATED,
        slots=64,
        max_cpu_time=3_600,
        vos=("lhcb",),
        platforms=("Linux-x86_64",),
        memory_mb=16_000,
        cores=16,
    )
    assert (
        offer.offered(offer.described(given_offer), replace(given_offer, slots=0, max_cpu_time=0, vos=()))
        == given_offer
    )
