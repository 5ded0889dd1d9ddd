"""GLUE 2.0 in XML: valid as written, the same as read, and refused if hostile."""

from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree

from tests.unit.glue.published import SCHEMA, arc
from tests.unit.glue.strategies import services
from wms.errors import Rejected
from wms.glue import glue2
from wms.glue.glue2_xml import read_xml, write_xml
from wms.glue.quantity import UNKNOWN, UNLIMITED


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(services())
def test_what_is_written_is_valid_and_read_as_the_same(service: glue2.Service):
    written = write_xml([service])
    SCHEMA.assertValid(etree.fromstring(written))
    assert read_xml(written) == [service]


def test_the_real_service_is_written_valid_and_read_as_the_same():
    written = write_xml([arc()])
    SCHEMA.assertValid(etree.fromstring(written))
    assert read_xml(written) == [arc()]


def test_what_must_be_told_and_is_not_known_is_told_by_its_placeholder():
    written = write_xml(
        [
            glue2.Service(
                id="urn:s",
                managers=(glue2.Manager(id="urn:m"),),
                environments=(glue2.Environment(id="urn:e", manager="urn:m"),),
                shares=(glue2.Share(id="urn:q", max_wall_seconds=UNLIMITED),),
            )
        ]
    )
    SCHEMA.assertValid(etree.fromstring(written))
    assert b"<MainMemorySize>999999999</MainMemorySize>" in written
    [service] = read_xml(written)
    assert service.environments[0].memory_mb is UNKNOWN
    assert service.shares[0].max_wall_seconds is UNLIMITED


def test_characters_that_xml_may_not_have_are_left_out():
    written = write_xml([glue2.Service(id="urn:s", name="a\x00b\ud800\x1bc")])
    SCHEMA.assertValid(etree.fromstring(written))
    assert read_xml(written)[0].name == "abc"


BOMB = (
    b"""<!DOCTYPE bomb [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><GLUE2>&b;</GLUE2>"""
)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (BOMB, "GLUE_INVALID"),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><GLUE2/>', "GLUE_INVALID"),
        (b"<a>" * 200 + b"</a>" * 200, "GLUE_TOO_LARGE"),
        (b"<a>", "GLUE_INVALID"),
        (b"", "GLUE_INVALID"),
        (b"<GLUE2>" + b" " * 2_000 + b"</GLUE2>", "GLUE_TOO_LARGE"),
        (b"<GLUE2><ComputingService><Name>no id</Name></ComputingService></GLUE2>", "GLUE_INVALID"),
    ],
)
def test_hostile_xml_is_refused(document: bytes, code: str):
    with pytest.raises(Rejected) as refused:
        read_xml(document, limit=2_000)
    assert refused.value.code == code


def test_one_wrong_number_does_not_take_the_share_away():
    text = escape("n/a & more")
    document = (
        f"<GLUE2><ComputingService><ID>s</ID><ComputingShare><ID>q</ID><MaxWallTime>{text}</MaxWallTime>"
        "<FreeSlots>3</FreeSlots></ComputingShare></ComputingService></GLUE2>"
    )
    [service] = read_xml(document.encode())
    assert (service.shares[0].max_wall_seconds, service.shares[0].free_slots) == (UNKNOWN, 3)
