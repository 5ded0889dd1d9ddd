"""Addresses of indexes and elements: one spelling, no passwords, and where an index may lead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.discovery.grid import BASE
from wms.discovery.address import Address, address, near, refusal
from wms.errors import Rejected


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
