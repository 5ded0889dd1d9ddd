"""Discovery without a network: addresses, documents, the walk, what is remembered, and who is let in."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.services.discovery.index_servers import queue
from wms.discovery.address import Address, address, near, refusal
from wms.discovery.admission import Asker, admits
from wms.discovery.document import LEADS_LIMIT, SIZE_LIMIT, read_element, read_index
from wms.discovery.memory import CacheLifetimes, Memory
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.discovery.walk import Bounds, Found, Walk
from wms.errors import Rejected
from wms.glue.glue1 import GlueComputingElement
from wms.site import ComputingElement as Offer

DATA = Path(__file__).parents[2] / "data" / "glue"
BASE = "https://index.example.org/grid/top.txt"


def index(name: str) -> Address:
    return address(f"https://{name}.example.org/", "index")


def element(site: str, *rules: str, name: str = "main") -> FoundElement:
    return FoundElement(
        site=site, glue=GlueComputingElement(id=f"{site}/{name}", name=name, access_rules=rules)
    )


# --- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    [
        "HTTPS://Index.Example.org/grid",
        "https://index.example.org:443/grid/",
        "https://index.example.org./x/../grid#part",
        "https://index.example.org//%67rid",
    ],
)
def test_spellings_of_one_server_have_one_key(spelling: str) -> None:
    assert address(spelling, "index").key == "https://index.example.org/grid"


@pytest.mark.parametrize(
    "other",
    [
        "http://index.example.org/grid",
        "https://index.example.org:8443/grid",
        "https://index.example.org/Grid",
        "https://index.example.org/grid?vo=lhcb",
    ],
)
def test_other_servers_have_other_keys(other: str) -> None:
    assert address(other, "index").key != "https://index.example.org/grid"


def test_addresses_are_relative_to_their_document() -> None:
    assert address("sweden.txt", "index", BASE).url == "https://index.example.org/grid/sweden.txt"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "https://",
        "https://user:secret@example.org/",
        "https://example.org:99999/",
        "https://[::1/",
        "https://a b/",
        "https://é.org/",
        f"https://x/{'y' * 2_048}",
    ],
)
def test_what_is_no_address_is_refused_and_no_password_told(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        address(text, "index")
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_an_address_with_a_steady_key_or_is_refused(text: str, base: str) -> None:
    try:
        found = address(text, "index", base)
    except Rejected:
        return
    assert Address(found.key, "index").key == found.key


@pytest.mark.parametrize(
    ("by", "of", "refused"),
    [
        (BASE, "https://a.example.org/", ""),
        (BASE, "http://a.example.org/", "not"),
        (BASE, "https://evil.org/", "none of the hosts"),
        (BASE, "file:///etc/passwd", "may not lead"),
        (BASE, "kafka://a.example.org/ads", "may not lead"),
        ("file:///etc/index", "file:///etc/other", ""),
        ("file:///etc/index", "http://a.example.org/", ""),
    ],
)
def test_where_an_index_may_lead(by: str, of: str, refused: str) -> None:
    why = refusal(address(of, "index"), address(by, "index"), ["*.EXAMPLE.org"])
    assert refused in why
    assert bool(why) == bool(refused)


# --- documents -------------------------------------------------------------------------------------

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


# --- the walk --------------------------------------------------------------------------------------

GRID = {
    "top": ["nordic", "east", "top"],
    "nordic": ["sweden", "norway", "top"],
    "east": ["norway", "nordic"],
    "sweden": [],
    "norway": ["nordic"],
}
"""Which indexes lead to which: with circles, and two ways to some."""


def tells(name: str) -> ServerAnswer:
    return ServerAnswer(elements=(element(name), element("common")), leads=tuple(map(index, GRID[name])))


def walked(order: tuple[str, ...]) -> tuple[Found, list[str]]:
    """Walk the grid, servers that are asked answering by their rank in an order; return what was found and who was asked."""
    walk = Walk(Bounds())
    asked = [each.host.partition(".")[0] for each in walk.begin([index("top")])]
    open_ = list(asked)
    while open_:
        name = min(open_, key=order.index)
        open_.remove(name)
        more = [each.host.partition(".")[0] for each in walk.answered(index(name), tells(name), "answered")]
        asked += more
        open_ += more
    return walk.report(), asked


@pytest.mark.parametrize("order", list(itertools.permutations(GRID)))
def test_each_is_asked_once_and_found_the_same_whoever_was_faster(order: tuple[str, ...]) -> None:
    found, asked = walked(order)
    assert sorted(asked) == sorted(GRID)
    assert [each.site for each in found.elements] == ["top", "common", "nordic", "sweden", "norway", "east"]
    assert [each.outcome for each in found.visits] == ["answered"] * 5
    assert {each.element.site for each in found.doubles} == {"common"}


@pytest.mark.parametrize(
    ("bounds", "asked", "refused"),
    [
        (Bounds(servers=50, depth=100), 50, "over 50 servers"),
        (Bounds(depth=3), 1 + 9 + 81, "over 3 indexes in each other"),
    ],
)
def test_a_walk_has_an_end_however_deep_and_wide_the_hierarchy_is(
    bounds: Bounds, asked: int, refused: str
) -> None:
    walk = Walk(bounds)
    left = walk.begin([index("root")])
    count = 0
    while left:
        count += 1
        each = left.pop()
        name = each.host.removesuffix(".example.org")
        told = ServerAnswer(
            leads=tuple(index(f"{name}-{n}") for n in range(9)), passed_over=(("dns:x", "no"),)
        )
        left += walk.answered(each, told, "answered")
    assert count == asked
    visits = walk.report().visits
    assert refused in {each.why for each in visits if each.outcome == "refused"}
    assert len(visits) <= asked + bounds.servers


def test_elements_that_are_too_many_are_not_kept_and_that_is_said() -> None:
    walk = Walk(Bounds(elements=2))
    first, second = walk.begin([index("a"), index("b")])
    walk.answered(first, ServerAnswer(elements=(element("a"), element("b"))), "answered")
    walk.answered(second, ServerAnswer(elements=(element("c"),), leads=(index("d"),)), "answered")
    found = walk.report()
    assert [each.site for each in found.elements] == ["a", "b"]
    assert [each.why for each in found.visits] == ["", "over 2 elements", ""]


def test_who_has_not_answered_is_late_and_who_told_of_it_is_said() -> None:
    walk = Walk(Bounds())
    [top] = walk.begin([index("top")])
    [sweden, norway] = walk.answered(top, ServerAnswer(leads=(index("sweden"), index("norway"))), "answered")
    walk.failed(norway, "failed", "404")
    [said, late, failed] = walk.report().visits
    assert (said.by, late.by, late.url, late.outcome) == ("", top.url, sweden.url, "late")
    assert (failed.outcome, failed.why) == ("failed", "404")
    assert len(walk.report().unheard) == 2


# --- what is remembered ----------------------------------------------------------------------------


def test_answers_are_fresh_then_stand_in_then_are_forgotten() -> None:
    memory = Memory(CacheLifetimes(), lambda: 0.0)
    memory.learned("x", ServerAnswer(), 100.0)
    states = [memory.recall("x", 100.0 + after).state for after in (0, 29.9, 30, 599.9, 600)]
    assert states == ["fresh", "fresh", "stale", "stale", "unknown"]
    assert memory.recall("x", 112.0).age_seconds == 12.0
    assert memory.recall("y", 100.0).state == "unknown"


def test_who_fails_is_left_alone_twice_as_long_each_time_and_forgiven_at_once() -> None:
    memory = Memory(CacheLifetimes(), lambda: 0.0)
    now, rests = 0.0, []
    for _ in range(7):
        memory.failed("x", "404", now)
        rests.append(next(s for s in range(2_000) if memory.recall("x", now + s).state != "resting"))
        now += rests[-1]
    assert rests == [30, 60, 120, 240, 480, 900, 900]
    memory.learned("x", ServerAnswer(), now)
    assert memory.recall("x", now).state == "fresh"
    memory.failed("x", "404", now)
    known = memory.recall("x", now + 29)
    assert (known.state, known.told, known.why) == ("resting", None, "404"), (
        "what it told is not believed any longer"
    )


def test_not_more_servers_are_remembered_than_may_be() -> None:
    memory = Memory(CacheLifetimes(servers=2), lambda: 0.0)
    for key in ("a", "b"):
        memory.learned(key, ServerAnswer(), 0.0)
    memory.recall("a", 1.0)
    memory.failed("c", "404", 1.0)
    assert [memory.recall(key, 1.0).state for key in ("a", "b", "c")] == ["fresh", "unknown", "resting"]


def test_not_more_elements_are_remembered_than_may_be() -> None:
    memory = Memory(CacheLifetimes(elements=3), lambda: 0.0)
    for key in ("a", "a", "b", "b"):
        memory.learned(key, ServerAnswer(elements=(element(key),)), 0.0)
    memory.learned("c", ServerAnswer(elements=(element("c"), element("d"))), 0.0)
    assert [memory.recall(key, 0.0).state for key in ("a", "b", "c")] == ["unknown", "fresh", "fresh"]


# --- who is let in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "asker", "lets_in"),
    [
        ((), Asker(vo="lhcb"), True),
        (("VO:lhcb",), Asker(vo="lhcb"), True),
        (("vo:lhcb",), Asker(vo="lhcb", group="prod"), True),
        (("VO:atlas",), Asker(vo="lhcb"), False),
        (("VO:atlas", "VO:lhcb"), Asker(vo="lhcb"), True),
        (("VO:lhcbx",), Asker(vo="lhcb"), False),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb"), True),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb", group="production"), True),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb", group="user"), False),
        (("VOMS:/lhcb/prod",), Asker(vo="lhcb", group="/lhcb/prod/Role=pilot"), True),
        (("VOMS:/lhcb/prod",), Asker(vo="lhcb", group="/lhcb/production"), False),
        (("VOMS:/lhcbx/prod",), Asker(vo="lhcb"), False),
        (("VOMS:/lhcb",), Asker(vo="lhcb", group="user"), True),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb", owner="/O=Grid/CN=ann"), True),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb", owner="/O=Grid/CN=bob"), False),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb"), False),
        (("ALL",), Asker(vo="lhcb"), True),
    ],
)
def test_rules_let_in(rules: tuple[str, ...], asker: Asker, lets_in: bool) -> None:  # noqa: FBT001 - a column
    assert admits(element("s", *rules), [asker]) is lets_in
    assert admits(element("s", *rules), [Asker(vo="nobody"), asker]) is lets_in
    assert admits(element("s", *rules), [])


def test_an_offer_without_rules_has_those_of_its_vos() -> None:
    offer = Offer(site="s", ce="c", slots=1, max_cpu_time=1, vos=("atlas",))
    told = replace(element("s"), offer=offer)
    assert not admits(told, [Asker(vo="lhcb")])
    assert admits(told, [Asker(vo="atlas")])


@pytest.mark.parametrize(
    ("urls", "asked", "left"),
    [
        (["https://index.example.org/a"], ["index.example.org", "ce.example.org"], ["ce.example.com", "example.net"]),
        (["https://example.org/"], ["example.org"], ["ce.org", "other.org"]),
        (["https://127.0.0.1:99/"], ["127.0.0.1"], ["127.0.0.2", "x.0.0.1"]),
        (["file:///etc/index"], [], ["example.org"]),
        (["https://[::1]/"], ["::1"], ["::2"]),
    ],
)  # fmt: skip
def test_unless_said_otherwise_indexes_lead_to_their_own_domains(
    urls: list[str], asked: list[str], left: list[str]
) -> None:
    root = address(urls[0], "index")

    def refused(host: str) -> bool:
        place = f"[{host}]" if ":" in host else host
        by = root if root.scheme == "https" else address("https://anywhere.example.org/", "index")
        return bool(refusal(address(f"https://{place}/", "element"), by, near(urls)))

    assert not any(map(refused, asked))
    assert all(map(refused, left))
