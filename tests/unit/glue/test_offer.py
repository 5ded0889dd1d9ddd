"""Offers of elements: what the site states, and what is taken from the queue."""

import pytest
from msgspec.structs import replace

from tests.unit.glue.published import bdii
from wms.errors import Rejected
from wms.glue import glue1, offer
from wms.glue.quantity import UNKNOWN, UNLIMITED
from wms.site import ComputingElement as Offer

STATED = Offer(site="EXAMPLE-T2", ce="long", slots=0, max_cpu_time=0, cores_per_pilot=8, slots_per_pilot=8)


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
