"""Between GLUE 2.0 and 1.x."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from tests.unit.glue.published import SCHEMA, arc, bdii
from tests.unit.glue.strategies import elements as published
from wms.glue import versions
from wms.glue.glue1 import GlueComputingElement
from wms.glue.glue2_xml import write_xml
from wms.glue.quantity import UNKNOWN, UNLIMITED


def test_the_queues_of_a_service_become_elements_whose_slots_are_counted_once():
    main, short = versions.elements(arc())
    assert (main.name, short.name) == ("main", "short")
    assert (main.total_cpus, main.free_job_slots, main.hosts.logical_cpus) == (320, 312, 320)
    assert (main.max_wall_seconds, short.max_wall_seconds) == (604_800, 1_800)
    assert main.access_rules == short.access_rules == ("VO:celab",)
    assert main.contact == "https://localhost:18443/arex"
    assert main.hosts.hepspec06 is None, "1.0 is what stands where nobody measured"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(published().map(lambda each: replace(each, contact="")), min_size=1, max_size=2))
def test_any_elements_make_services_by_cluster_that_the_schema_takes(found: list[GlueComputingElement]):
    services = versions.services(found)
    SCHEMA.assertValid(etree.fromstring(write_xml(services)))
    assert sum(len(each.shares) for each in services) == len(found)
    assert len({each.id for each in services}) == len(services)


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
