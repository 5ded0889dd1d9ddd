"""GLUE 1.x, between it and GLUE 2.0, and between it and what the matcher knows of a site."""

from tests.unit.glue.published import bdii
from wms.glue import glue1
from wms.glue.quantity import UNKNOWN


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
