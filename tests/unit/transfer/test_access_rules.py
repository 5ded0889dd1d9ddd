"""Which URLs and addresses a site allows."""

import ipaddress

import pytest

from wms.errors import Rejected
from wms.transfer.access_rules import REFUSED, AccessRules, is_inner
from wms.transfer.file_url import FileUrl


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "168.63.129.16",
    ],
)
def test_addresses_of_the_node_and_of_metadata_are_inner(address: str) -> None:
    assert is_inner(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["192.0.32.8", "10.1.2.3", "2001:500:88:200::8"])
def test_addresses_of_others_are_not(address: str) -> None:
    assert not is_inner(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "gopher://h/a",
        "root://h//a",
        "https://other.org/a",
        "http://169.254.169.254/latest",
        "http://[::1]/a",
        "file:///etc/passwd",
        "file:///data/../etc/passwd",
        "file:///database/x",
    ],
)
def test_what_is_not_allowed_is_refused(url: str) -> None:
    rules = AccessRules(hosts=["*.example.org", "169.*", "::1"], directories=["/data"])
    with pytest.raises(Rejected) as refused:
        rules.check(FileUrl.parse(url))
    assert refused.value.code == REFUSED


@pytest.mark.parametrize("url", ["https://a.EXAMPLE.org/a", "davs://b.example.org:8443/a", "file:///data/a"])
def test_what_is_allowed_is_not(url: str) -> None:
    AccessRules(hosts=["*.example.org"], directories=["/data"]).check(FileUrl.parse(url))


def test_no_file_of_the_node_is_allowed_by_default() -> None:
    with pytest.raises(Rejected, match="these directories: none"):
        AccessRules().check(FileUrl.parse("file:///tmp/a"))
