"""The dashboard's page and files: what they may load, how long they are kept, and what is said without them."""

from pathlib import Path

import pytest
from starlette.requests import Request

from services.gateway.authentication import Authentication
from services.gateway.config import RequestLimits
from services.gateway.dashboard_files import DashboardFiles
from tests.services.gateway.conftest import Door
from wms.auth.keys import KeySet
from wms.auth.token import Verifier


def files(directory: Path) -> DashboardFiles:
    return DashboardFiles(Authentication(Verifier(KeySet(keys=())), RequestLimits()), directory)


def request(**in_path: str) -> Request:
    return Request({"type": "http", "headers": [], "client": ("127.0.0.1", 1), "path_params": in_path})


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>wms</title>")
    (tmp_path / "assets" / "index-1a2b.js").write_text("export {}")
    return tmp_path


async def test_the_page_loads_from_here_alone(built: Path) -> None:
    answer = await files(built).page(request())
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


async def test_files_are_kept_for_good(built: Path) -> None:
    answer = await files(built).file(request(name="index-1a2b.js"))
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("name", ["other.js", "../index.html", ".."])
async def test_nothing_else_is_served(built: Path, name: str) -> None:
    assert (await files(built).file(request(name=name))).status_code == 404


async def test_without_files_it_says_what_to_run(tmp_path: Path) -> None:
    answer = await files(tmp_path).page(request())
    assert answer.status_code == 503
    assert b"make dashboard" in bytes(answer.body)


@pytest.mark.parametrize("address", ["/", "/jobs", "/jobs/7", "/sites/a%20b", "/usage", "/submit"])
async def test_the_gateway_serves_the_page_at_each_address_without_a_token(door: Door, address: str) -> None:
    async with door.session.get(f"{door.url}{address}") as answer:
        assert answer.status in (200, 503)
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


async def test_there_are_no_other_addresses(door: Door) -> None:
    async with door.session.get(f"{door.url}/jobs/seven") as answer:
        assert answer.status == 404
