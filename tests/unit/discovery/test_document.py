"""Documents of indexes and elements."""

from pathlib import Path

import pytest

from tests.services.discovery.index_servers import queue
from tests.unit.discovery.grid import BASE
from wms.discovery.address import address
from wms.discovery.document import LEADS_LIMIT, SIZE_LIMIT, read_element, read_index
from wms.errors import Rejected

DATA = Path(__file__).parents[2] / "data" / "glue"


ARCHERY = b"""
"o=group id=nordic"
"u=https://sweden.example.org/index.txt t=archery.group"
"u=norway.txt t=archery.group"
u=https://ce.example.org/arex t=org.nordugrid.arcrest s=1
u=https://gone.example.org/arex t=org.nordugrid.arcrest s=0
u=ldap://ce.example.org:2135/ t=org.nordugrid.ldapng
u=dns:///sweden.example.org t=org.nordugrid.archery
"""


def test_a_list_of_endpoints_as_archery_has_it() -> None:
    told = read_index(ARCHERY, BASE)
    assert [(each.url, each.kind) for each in told.leads] == [
        ("https://sweden.example.org/index.txt", "index"),
        ("https://index.example.org/grid/norway.txt", "index"),
        ("https://ce.example.org/arex", "element"),
    ]
    [(nowhere, _)] = told.passed_over
    assert nowhere.startswith("dns:")


REGISTRY = b"""<Services xmlns="http://schemas.ogf.org/glue/2009/03/spec_2.0_r1">
  <Service><ID>urn:index</ID>
    <Endpoint><ID>urn:1</ID><URL>https://sweden.example.org/glue.xml</URL>
      <Capability>information.discovery.registry</Capability><InterfaceName>org.example.xml</InterfaceName></Endpoint>
    <Endpoint><ID>urn:2</ID><URL>https://ce.example.org/arex</URL>
      <Capability>executionmanagement.jobcreation</Capability><InterfaceName>org.nordugrid.arcrest</InterfaceName></Endpoint>
    <Endpoint><ID>urn:3</ID><URL>gsiftp://ce.example.org/jobs</URL><InterfaceName>org.nordugrid.gridftpjob</InterfaceName></Endpoint>
  </Service></Services>"""


def test_a_registry_in_glue() -> None:
    told = read_index(REGISTRY, BASE)
    assert [(each.host, each.kind) for each in told.leads] == [
        ("sweden.example.org", "index"),
        ("ce.example.org", "element"),
    ]
    assert not told.elements


@pytest.mark.parametrize("name", ["arc.xml", "arc.json", "arc.ldif"])
def test_an_element_that_is_described_whole_is_not_asked_besides(name: str) -> None:
    told = read_index((DATA / name).read_bytes(), BASE)
    assert {each.name for each in told.elements} == {"main", "short"}
    assert {each.site for each in told.elements} == {"localhost"}
    assert not told.leads


def test_an_element_tells_of_itself_and_cannot_be_another_site_nor_lead_anywhere() -> None:
    door = address("https://ce.example.org/arex", "element")
    told = read_element((DATA / "arc.xml").read_bytes(), door)
    assert {(each.site, each.name) for each in told.elements} == {
        ("ce.example.org", "main"),
        ("ce.example.org", "short"),
    }
    assert not read_element(REGISTRY, door).leads


def test_a_bdii_tells_of_its_sites() -> None:
    told = read_index((DATA / "bdii.ldif").read_bytes(), BASE)
    assert told.elements
    assert all(each.site for each in told.elements)


@pytest.mark.parametrize("site", ["any", "x" * 201, "a\x07b"])
def test_names_that_can_be_none_are_left_out(site: str) -> None:
    told = read_index(b"\n".join([queue(site), queue("good")]), BASE)
    assert [each.site for each in told.elements] == ["good"]


@pytest.mark.parametrize(
    "data",
    [
        b"<html><body>404",
        b"{",
        b"\x00\xff\xfe",
        b"once upon a time",
        b'<!DOCTYPE x [<!ENTITY e "">]><x>&e;</x>',
        b"<x>" * 1_000,
        b"[" * 100_000,
        b" " * (SIZE_LIMIT + 1),
    ],
)
def test_what_is_no_index_is_refused(data: bytes) -> None:
    with pytest.raises(Rejected):
        read_index(data, BASE)


def test_an_index_that_names_too_many_is_read_so_far() -> None:
    lines = b"".join(b"u=https://h%d.example.org/ t=archery.group\n" % n for n in range(LEADS_LIMIT + 1))
    told = read_index(lines, BASE)
    assert len(told.leads) == LEADS_LIMIT
    assert "over 10,000" in dict(told.passed_over)[BASE]
