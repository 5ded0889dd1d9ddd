"""The session of a pilot with a gateway: it trusts the authorities that it was given, for messages and for files alike."""

import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from services.job_agent.gateway_session import FAILURES, bearer, gateway_session, unanswered
from services.job_agent.gateway_store import opened_store
from tests.certificates import certificate
from tests.services.job_agent.test_gateway_connection import served
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer import digest_of

CONTENT = b"an archive"


async def archive(request: web.Request) -> web.Response:
    assert request.headers["Authorization"] == "Bearer token"
    return web.Response(body=CONTENT)


async def test_files_come_from_a_gateway_of_a_private_authority(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path / "tls")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(cert, key)
    async for port in served(archive, tls):
        settings = SandboxSettings(url=f"https://localhost:{port}", authorities=cert.read_text())
        async with opened_store(settings, lambda: "token") as stores:
            store = stores.of_attempt(AttemptId(JobId(1), Epoch(1)))
            await store.fetch(digest_of(CONTENT), tmp_path / "input")
        assert (tmp_path / "input").read_bytes() == CONTENT
        async with gateway_session("", 1) as other:
            with pytest.raises(FAILURES, match="certificate"):
                await other.get(f"https://localhost:{port}", headers=bearer("token"))


async def test_authorities_that_are_no_certificates_are_refused() -> None:
    with pytest.raises(Rejected, match="BAD_AUTHORITIES"):
        gateway_session("none", 1)
    with pytest.raises(Rejected, match="BAD_AUTHORITIES"):
        async with opened_store(SandboxSettings(url="https://h", authorities="none"), lambda: "token"):
            pass


def test_an_error_without_words_is_named() -> None:
    assert unanswered("no answer", aiohttp.ClientError()).message == "no answer: ClientError"
    assert unanswered("no answer", OSError("cut")).message == "no answer: cut"
    assert bearer("") == {}
