"""GLUE 2.0 in its realisations: what a real ARC published, what anybody may publish, and what enemies may send."""

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree

from tests.unit.glue.strategies import services
from wms.errors import Rejected
from wms.glue import glue2, ldif
from wms.glue.arc_json import read_arc_json
from wms.glue.glue2_xml import read_xml, write_xml
from wms.glue.quantity import UNKNOWN, UNLIMITED

DATA = Path(__file__).parents[2] / "data" / "glue"
SCHEMA = etree.XMLSchema(etree.parse(DATA / "glue2.xsd"))


def arc() -> glue2.Service:
    """Return what ARC 6.17 with Slurm behind it published: 320 slots, two queues."""
    [service] = read_xml((DATA / "arc.xml").read_bytes())
    return service


def test_a_real_service_is_read_with_all_that_belongs_to_it():
    service = arc()
    assert sorted(share.name for share in service.shares) == ["main", "main_celab", "short", "short_celab"]
    assert [manager.product_name for manager in service.managers] == ["slurm"]
    assert [each.memory_mb for each in service.environments] == [16_000, 16_000]
    assert {each.technology for each in service.endpoints} == {"webservice", "rest"}
    short = next(share for share in service.shares if share.name == "short")
    assert (short.max_wall_seconds, short.default_cpu_seconds, short.min_cpu_seconds) == (1800, 600, UNKNOWN)
    assert short.environments == ("urn:ogf:ExecutionEnvironment:localhost:execenv1",)


def test_policies_that_share_one_identifier_are_those_of_their_shares():
    """ARC names the policies of all shares of a VO alike: a share that lost its own would be open to all."""
    assert {share.name: share.rules for share in arc().shares} == {
        "main": (),
        "short": (),
        "main_celab": ("vo:celab",),
        "short_celab": ("vo:celab",),
    }
    assert all(
        endpoint.rules == ("vo:celab",) for endpoint in arc().endpoints if endpoint.technology == "webservice"
    )


def test_free_slots_of_shares_over_the_same_machines_are_not_added_up():
    assert [share.free_slots for share in arc().shares] == [312] * 4
    assert glue2.free_slots(arc()) == 312


def test_free_slots_are_the_most_that_a_share_sees_where_the_manager_does_not_count():
    service = glue2.Service(
        id="s",
        shares=(glue2.Share(id="a", free_slots=7), glue2.Share(id="b", free_slots=5), glue2.Share(id="c")),
        managers=(glue2.Manager(id="m", total_slots=10),),
    )
    assert glue2.free_slots(service) == 7


def test_arcs_json_is_its_xml():
    assert read_arc_json((DATA / "arc.json").read_bytes()) == [arc()]


def test_ldif_is_read_with_its_foreign_keys():
    [service] = ldif.glue2_services(ldif.read_ldif((DATA / "arc.ldif").read_bytes())[0])
    by_name = {share.name: share for share in service.shares}
    assert by_name.keys() == {"main", "main_celab", "short", "short_celab"}
    assert by_name["main_celab"].rules == by_name["short_celab"].rules == ("vo:celab",)
    assert by_name["main"].max_wall_seconds == 604_800
    assert [manager.total_slots for manager in service.managers] == [320]
    assert {each.name: each.logical_cpus for each in service.environments} == {"execenv0": 8, "execenv1": 8}


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


def test_states_that_the_model_does_not_know_are_not_published():
    document = b"""{"ComputingService": {"ID": "urn:s", "QualityLevel": "Production",
        "ComputingShare": [{"ID": "urn:a", "ServingState": "on fire"}]}}"""
    [service] = read_arc_json(document)
    assert (service.quality_level, service.shares[0].serving_state) == ("production", "")
    SCHEMA.assertValid(etree.fromstring(write_xml([service])))


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


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"[" * 100_000, "GLUE_TOO_LARGE"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "GLUE_TOO_LARGE"),
        (b"{", "GLUE_INVALID"),
        (b"\xff", "GLUE_INVALID"),
        (b'{"ComputingService":{"Name":"no id"}}', "GLUE_INVALID"),
        (b'"' + b"x" * 200_000 + b'"', "GLUE_TOO_LARGE"),
    ],
)
def test_hostile_json_is_refused(document: bytes, code: str):
    with pytest.raises(Rejected) as refused:
        read_arc_json(document, limit=150_000)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"dn x\n", "GLUE_INVALID"),
        (b"dn:: ?\n", "GLUE_INVALID"),
        (b"dn:: \xff\n", "GLUE_INVALID"),
        (b"dn: x\n" * 500, "GLUE_TOO_LARGE"),
    ],
)
def test_hostile_ldif_is_refused(document: bytes, code: str):
    with pytest.raises(Rejected) as refused:
        ldif.read_ldif(document, limit=2_000)
    assert refused.value.code == code


def test_one_wrong_number_does_not_take_the_share_away():
    text = escape("n/a & more")
    document = (
        f"<GLUE2><ComputingService><ID>s</ID><ComputingShare><ID>q</ID><MaxWallTime>{text}</MaxWallTime>"
        "<FreeSlots>3</FreeSlots></ComputingShare></ComputingService></GLUE2>"
    )
    [service] = read_xml(document.encode())
    assert (service.shares[0].max_wall_seconds, service.shares[0].free_slots) == (UNKNOWN, 3)
