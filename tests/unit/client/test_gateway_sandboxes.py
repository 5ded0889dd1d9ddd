"""Archives over HTTPS: what comes is verified, and what is wrong leaves nothing behind."""

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.web_server import web_server
from wms.client.gateway_sandboxes import GatewaySandboxes
from wms.errors import Rejected, Unavailable
from wms.transfer import TornSandbox, digest_of


async def fetched(tmp_path: Path, answer: web.Response, digest: str) -> bytes:
    async def output(_: web.Request) -> web.Response:
        return answer

    app = web.Application()
    app.router.add_get("/jobs/7/output", output)
    async with web_server(app) as port, aiohttp.ClientSession() as session:
        store = GatewaySandboxes(session, f"http://127.0.0.1:{port}", {}, 7)
        await store.fetch(digest, tmp_path / "archive")
        return (tmp_path / "archive").read_bytes()


async def test_an_archive_comes_whole(tmp_path: Path) -> None:
    assert await fetched(tmp_path, web.Response(body=b"archive"), digest_of(b"archive")) == b"archive"


async def test_another_archive_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(TornSandbox):
        await fetched(tmp_path, web.Response(body=b"other"), digest_of(b"archive"))
    assert list(tmp_path.iterdir()) == []


async def test_a_refusal_is_told(tmp_path: Path) -> None:
    refusal = web.json_response({"code": "NO_OUTPUT", "detail": "there is none"}, status=404)
    with pytest.raises(Rejected, match="NO_OUTPUT"):
        await fetched(tmp_path, refusal, digest_of(b"archive"))


async def test_a_download_that_is_cut_off_goes_on_and_one_that_brings_nothing_ends(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2_000
    asked: list[str] = []

    async def output(request: web.Request) -> web.StreamResponse:
        """Send a fifth of it, and cut the connection; nothing at all from the sixth request on."""
        asked.append(request.headers.get("Range", ""))
        first = int(asked[-1].removeprefix("bytes=").rstrip("-") or 0)
        answer = web.StreamResponse(
            status=206 if first else 200, headers={"Content-Length": str(len(data) - first)}
        )
        await answer.prepare(request)
        if len(asked) <= enough:
            await answer.write(data[first : first + len(data) // 5 + 1])
        assert request.transport is not None
        request.transport.close()
        return answer

    app = web.Application()
    app.router.add_get("/jobs/7/output", output)
    async with web_server(app) as port, aiohttp.ClientSession() as session:
        store = GatewaySandboxes(session, f"http://127.0.0.1:{port}", {}, 7)
        enough = 5
        await store.fetch(digest_of(data), tmp_path / "archive")
        assert (tmp_path / "archive").read_bytes() == data
        assert asked == ["", *(f"bytes={n * (len(data) // 5 + 1)}-" for n in range(1, 5))]
        asked.clear()
        enough = 2
        with pytest.raises(Unavailable, match="did not come"):
            await store.fetch(digest_of(data), tmp_path / "another")
        assert len(asked) == 3
