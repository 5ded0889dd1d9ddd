"""A download that breaks goes on where it was, and is not longer than an archive may be."""

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.web_server import web_server
from wms.errors import Rejected
from wms.transfer import archive_download
from wms.transfer.archive_download import append_rest

DATA = bytes(range(250)) * 40


async def _rest(request: web.Request) -> web.Response:
    first = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    if first >= len(DATA):
        return web.Response(status=416)
    return web.Response(status=206 if first else 200, body=DATA[first:])


async def _whole(_: web.Request) -> web.Response:
    return web.Response(body=DATA)


async def appended(path: Path, *, ranges: bool = True) -> bytes:
    """Return what is in the file after one try."""
    app = web.Application()
    app.router.add_get("/archive", _rest if ranges else _whole)
    timeout = aiohttp.ClientTimeout(total=30)
    async with web_server(app) as port, aiohttp.ClientSession() as session:
        with path.open("r+b") as file:
            await append_rest(session, f"http://127.0.0.1:{port}/archive", {}, timeout, file)
    return path.read_bytes()


@pytest.mark.parametrize("had", [0, 1, 9_999, 10_000])
@pytest.mark.parametrize("ranges", [True, False])
async def test_only_the_rest_comes_where_ranges_are_served(tmp_path: Path, had: int, *, ranges: bool) -> None:
    (tmp_path / "a").write_bytes(DATA[:had])
    assert await appended(tmp_path / "a", ranges=ranges) == DATA


async def test_more_than_an_archive_may_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_download, "MAX_OBJECT", len(DATA) - 1)
    (tmp_path / "a").touch()
    with pytest.raises(Rejected, match="SANDBOX_TOO_LARGE"):
        await appended(tmp_path / "a")
