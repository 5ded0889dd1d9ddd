"""A closed network: it comes and goes, hides what it should, and leads nowhere but here."""

import subprocess
from pathlib import Path

import pytest

from deploy.testbed.closed_network import NAMESPACES, ClosedNetwork, lack

pytestmark = pytest.mark.testbed


@pytest.fixture(autouse=True)
def possible(tmp_path: Path) -> None:
    if why := lack(tmp_path):
        pytest.skip(f"CLOSED NETWORK NOT TESTED: this machine lacks {why}")


def said(network: ClosedNetwork, *argv: str) -> str:
    return subprocess.run(network.inside(*argv), check=True, capture_output=True, text=True).stdout


def test_inside_there_is_one_route_and_hidden_directories_are_empty(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden here"
    hidden.mkdir()
    (hidden / "secret").touch()
    network = ClosedNetwork(tmp_path, [hidden])
    network.open()
    try:
        (route,) = said(network, "ip", "route").splitlines()
        assert f"src {network.nodes}" in route
        assert "via" not in route
        assert said(network, "ls", str(hidden)) == ""
        assert said(network, "readlink", "/proc/self/ns/net").strip() == f"net:[{network.inode}]"
        assert list(hidden.iterdir()), "it is hidden inside alone"
    finally:
        network.close()


def test_nothing_of_it_is_left_also_by_one_that_was_never_closed(tmp_path: Path) -> None:
    left, network = ClosedNetwork(tmp_path), ClosedNetwork(tmp_path)
    left.open()
    network.open()
    network.close()
    network.close()
    assert not (NAMESPACES / network.name).exists()


def test_two_testbeds_have_networks_of_their_own(tmp_path: Path) -> None:
    one, other = ClosedNetwork(tmp_path / "one"), ClosedNetwork(tmp_path / "other")
    assert len({one.name, other.name, one.host, other.host, one.nodes, other.nodes}) == 6
