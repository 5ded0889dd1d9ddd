"""Archives over HTTPS: what comes is verified, and what is wrong leaves nothing behind."""

from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.web_server import web_server
from wms.client.gateway_sandboxes import GatewaySandboxes
from wms.errors import Rejected
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
