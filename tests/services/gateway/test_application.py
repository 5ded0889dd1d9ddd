"""Whatever goes wrong is answered with problem details, and never with a traceback."""

import asyncio

import msgspec
import pytest

from tests.services.gateway.conftest import Door

PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "NO_SUCH_ROUTE"),
        ("PATCH", "/jobs", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/jobs?limit=x", 422, "BAD_PARAMETER"),
        ("GET", "/jobs?limit=0", 422, "BAD_PARAMETER"),
        ("GET", "/jobs?limit=1001", 422, "BAD_PARAMETER"),
        ("GET", "/jobs?limit=1&limit=2", 422, "BAD_PARAMETER"),
        ("GET", "/jobs?sort=name", 422, "BAD_PARAMETER"),
        ("GET", "/jobs?jobs=7-3", 422, "BAD_SELECTOR"),
        ("GET", "/jobs?state=happy", 422, "BAD_SELECTOR"),
        ("GET", "/jobs?everything=true&since=2026-01-01T00:00:00", 422, "BAD_SELECTOR"),
        ("GET", "/jobs?owner=%00", 422, "BAD_SELECTOR"),
        ("GET", "/jobs/x", 422, "BAD_PARAMETER"),
        ("GET", "/jobs/99999999", 404, "NO_SUCH_JOB"),
        ("GET", "/jobs/99999999999999999999", 422, "BAD_PARAMETER"),
        ("GET", "/pilots/none", 404, "NO_SUCH_PILOT"),
        ("POST", "/orders", 415, "MEDIA_TYPE"),
        ("POST", "/jobs", 415, "MEDIA_TYPE"),
    ],
)
async def test_a_faulty_request_is_answered(
    door: Door, owner: str, method: str, path: str, status: int, code: str
) -> None:
    async with door.session.request(
        method, f"{door.url}/api/v1{path}", headers=door.headers(owner)
    ) as answer:
        problem = await answer.json(content_type=PROBLEM)
        assert (answer.status, problem["code"], problem["status"]) == (status, code, status)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/jobs", b"{", "DESCRIPTION_INVALID"),
        ("/jobs", b'{"executable": 3}', "DESCRIPTION_INVALID"),
        ("/jobs", b"[]", "DESCRIPTION_INVALID"),
        ("/orders", b"{", "BODY_INVALID"),
        ("/orders", b'{"action": "kill", "selection": {}}', "NOTHING_SELECTED"),
        ("/orders", b'{"action": "kiss", "selection": {"jobs": "1"}}', "BODY_INVALID"),
        (
            "/orders",
            b'{"action": "kill", "selection": {"jobs": "1"}, "reason": "\\u0000"}',
            "MESSAGE_INVALID",
        ),
    ],
)
async def test_a_faulty_body_is_answered(door: Door, owner: str, path: str, body: bytes, code: str) -> None:
    headers = door.headers(owner, **{"Content-Type": "application/json"})
    async with door.session.post(f"{door.url}/api/v1{path}", data=body, headers=headers) as answer:
        problem = await answer.json(content_type=PROBLEM)
        assert (answer.status, problem["code"]) == (422, code)


async def test_a_body_over_the_limit_is_refused_before_it_is_read(door: Door, owner: str) -> None:
    headers = door.headers(owner, **{"Content-Type": "application/json"})
    async with door.session.post(
        f"{door.url}/api/v1/orders", data=b" " * 1_000_000, headers=headers
    ) as answer:
        assert (answer.status, (await answer.json(content_type=PROBLEM))["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "TOKEN_MISSING"),
        ("Basic YTpi", "TOKEN_MISSING"),
        ("Bearer ", "TOKEN_MISSING"),
        ("Bearer a.b.c", "TOKEN_INVALID"),
        (f"Bearer {'x' * 9_000}", "TOKEN_INVALID"),
    ],
)
async def test_nobody_is_let_in_without_a_token(door: Door, header: str, code: str) -> None:
    headers = {"Authorization": header} if header else {}
    async with door.session.get(f"{door.url}/api/v1/sites", headers=headers) as answer:
        problem = await answer.json(content_type=PROBLEM)
        assert (answer.status, problem["code"]) == (401, code)
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "x" * 100 not in msgspec.json.encode(problem).decode()


async def test_an_expired_token_is_told_so(door: Door) -> None:
    token = door.place.token("late", lifetime=-7200.0).read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with door.session.get(f"{door.url}/api/v1/sites", headers=headers) as answer:
        assert (answer.status, (await answer.json(content_type=PROBLEM))["code"]) == (401, "TOKEN_EXPIRED")


async def test_headers_without_end_are_cut_off(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(door.url.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000)
    await writer.drain()
    said = await asyncio.wait_for(reader.read(100), 30)
    assert said.startswith(b"HTTP/1.1 400")
    writer.close()


async def test_long_answers_are_packed_for_who_takes_that(door: Door, owner: str) -> None:
    jobs = [{"executable": "echo", "name": f"packed{n}"} for n in range(50)]
    await door.ask(owner, "POST", "/jobs", jobs)
    headers = door.headers(owner, **{"Accept-Encoding": "gzip"})
    async with door.session.get(f"{door.url}/api/v1/jobs?everything=true", headers=headers) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len((await answer.json())["jobs"]) == 50
