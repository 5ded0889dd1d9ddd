"""Attacks on the pilots' routes of the gateway, by somebody with the valid token of a pilot of another site and VO."""

import asyncio
import contextlib
import secrets
import statistics
import sys
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import msgspec
import pytest_asyncio

from tests.hostile.innocent import SAMPLES, Innocent
from tests.hostile.stream_attack import AttackedPilot, Wave
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.auth.orders import ORDERS_KEY, OrderKeys
from wms.auth.token import Claims
from wms.client import Client, JobDescription, select
from wms.client.settings import GatewayAddress
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId
from wms.job.reasons import Code
from wms.messages.reports import Report, Result
from wms.messages.wire import encode

EVIL = "p-00000000000000ef"
STREAMS = 5_000
HELD = "select pilot_id, job_id, epoch from lease where phase = 'accepted'"


class Thief:
    """Somebody with the token of a pilot that is not there, at the gateway."""

    def __init__(self, target: Target, session: aiohttp.ClientSession) -> None:
        claims = Claims(
            kind="pilot",
            owner="sauron",
            group="pilot",
            vo="mordor",
            pilot_id=EVIL,
            site="Barad-dur",
            ce="tower",
        )
        self.target = target
        self.session = session
        self.url = f"{target.system.gateway_url}/api/v1"
        self.token = target.token(claims)
        self.headers = {"Authorization": f"Bearer {self.token}"}

    async def asks(self, method: str, path: str, **more: object) -> tuple[int, str]:
        """Return the status and the code of the answer; of a stream that opens, only the status."""
        async with self.session.request(
            method,
            f"{self.url}{path}",
            headers=self.headers | ({"Content-Type": "application/json"} if "data" in more else {}),
            **more,  # type: ignore[arg-type]  # json, data
        ) as answer:
            if answer.status < 400:
                return answer.status, ""
            return answer.status, (await answer.json(content_type=None))["code"]

    async def says(self, *messages: msgspec.Struct) -> tuple[int, str]:
        """Send messages as the pilot of the token."""
        raw = b'{"messages":[%b]}' % b",".join(map(encode, messages))
        return await self.asks("POST", f"/pilots/{EVIL}/messages", data=raw)

    async def held(self) -> list[tuple[PilotId, AttemptId]]:
        """Return who holds what, as no attacker could know."""
        connection = await asyncpg.connect(self.target.database)
        try:
            return [
                (PilotId(row["pilot_id"]), AttemptId(JobId(row["job_id"]), Epoch(row["epoch"])))
                for row in await connection.fetch(HELD)
            ]
        finally:
            await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def user(running: Target) -> AsyncIterator[Innocent]:
    """Yield an innocent user who comes through the gateway."""
    gateway = GatewayAddress(url=running.system.gateway_url)
    settings = msgspec.structs.replace(running.settings(Innocent.owner), gateway=gateway)
    async with Client.connect(settings) as client:
        innocent = Innocent(client, running)
        await innocent.learn_usual()
        yield innocent


@pytest_asyncio.fixture(loop_scope="session")
async def thief(target: Target) -> AsyncIterator[Thief]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Thief(target, session)


async def test_the_routes_of_other_pilots_are_closed(user: Innocent, thief: Thief) -> None:
    async with user.beside():
        for pilot_id, held in await eventually(thief.held):
            forged = encode(Report(pilot_id=pilot_id, report_id=ReportId("r"), renew=(held,)))
            body = b'{"messages":[%b]}' % forged
            for way in (pilot_id, EVIL):
                refused = await thief.asks("POST", f"/pilots/{way}/messages", data=body)
                assert refused[1] == "NOT_ALLOWED"
            assert (await thief.asks("GET", f"/pilots/{pilot_id}/orders"))[1] == "NOT_ALLOWED"


async def test_reports_on_what_another_pilot_holds_change_nothing(user: Innocent, thief: Thief) -> None:
    async with user.beside():
        for _, held in await eventually(thief.held):
            ended = Result(job_id=held.job_id, epoch=held.epoch, outcome="done", code=Code.DONE)
            for number, report in enumerate(
                (
                    Report(pilot_id=PilotId(EVIL), report_id=ReportId("0"), finish=(ended,)),
                    Report(pilot_id=PilotId(EVIL), report_id=ReportId("1"), decline=(held,)),
                    Report(pilot_id=PilotId(EVIL), report_id=ReportId("2"), accept=(held,), start=(held,)),
                )
            ):
                assert await thief.says(report) == (202, ""), number


async def test_files_of_what_another_pilot_holds_are_neither_read_nor_written(
    user: Innocent, thief: Thief
) -> None:
    given = await user.client.upload({"given": b"mine\n"})
    async with user.beside():
        taken = await user.client.submit(
            JobDescription(executable="/bin/sleep", arguments=("60",), cpu_time=100, input_sandbox=(given,))
        )
        (job_id,) = taken.job_ids()
        await eventually(lambda: _is_held(thief, job_id), 60)
        place = f"/attempts/{job_id}/1"
        _, code = await thief.asks("GET", f"{place}/inputs/{given.sha256}")
        assert code == "NOT_HELD"
        archive = {"Content-Type": "application/gzip"}
        async with thief.session.put(
            f"{thief.url}{place}/output", data=b"\x1f\x8b", headers=thief.headers | archive
        ) as answer:
            assert answer.status >= 400
        await user.client.kill(select([job_id]))


@contextlib.asynccontextmanager
async def stream_attack(thief: Thief) -> AsyncIterator[asyncio.StreamReader]:
    """Attack from a process of its own, with less right to the processors than the system has; yield what it prints, a Wave a line."""
    process = await asyncio.create_subprocess_exec(
        "nice", "-n", "10", sys.executable, "-m", "tests.hostile.stream_attack",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    pilot = AttackedPilot(url=f"{thief.url}/pilots/{EVIL}", token=thief.token)
    process.stdin.write(msgspec.json.encode(pilot) + b"\n")
    try:
        yield process.stdout
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_thousands_of_streams_and_huge_reports_of_one_pilot_are_refused_while_jobs_go_on(
    user: Innocent, thief: Thief
) -> None:
    async def until_enough(printed: asyncio.StreamReader) -> Wave:
        wave = Wave()
        while wave.streams < STREAMS:
            wave = msgspec.json.decode(await printed.readline(), type=Wave)
        return wave

    async with stream_attack(thief) as printed:
        attacking = asyncio.create_task(until_enough(printed))
        seconds = [await user.run_one() for _ in range(SAMPLES)]
        while not attacking.done():
            seconds.append(await user.run_one())
        statuses = (await attacking).statuses
    assert 429 in statuses, "the pilot's own budget ends first"
    assert 413 in statuses, "what is too large is not read"
    assert not statuses & {500, 502}
    await user.check_seconds(statistics.median(seconds), seconds)


async def test_a_guessed_secret_is_refused_and_ends_nobody(user: Innocent, thief: Thief) -> None:
    async with user.beside():
        for pilot_id in {pilot_id for pilot_id, _ in await eventually(thief.held)}:
            for _ in range(50):
                guess = {"exchange_id": secrets.token_hex(16), "proof": secrets.token_urlsafe(32)}
                _, code = await thief.asks("POST", f"/pilots/{pilot_id}/credential", json=guess)
                assert code == "SECRET_REFUSED"


async def test_a_used_secret_gives_nothing_and_its_pilot_is_replaced(user: Innocent, thief: Thief) -> None:
    taken = await user.client.submit(
        JobDescription(executable="/bin/sleep", arguments=("20",), cpu_time=100, max_attempts=3)
    )
    (job_id,) = taken.job_ids()
    await eventually(lambda: _is_held(thief, job_id), 60)
    (victim,) = {pilot_id for pilot_id, held in await thief.held() if held.job_id == job_id}
    keys = OrderKeys.from_file(thief.target.system.layout.keys / ORDERS_KEY)
    exchange_id = secrets.token_hex(16)
    copied = {"exchange_id": exchange_id, "proof": keys.secrets_of(victim)[0].proof(exchange_id)}
    _, code = await thief.asks("POST", f"/pilots/{victim}/credential", json=copied)
    assert code == "SECRET_USED"
    assert await user.client.wait(taken.selector(), timeout=120) == {"Done": 1}
    first, *_, last = (await user.client.show(job_id)).attempts
    assert first.pilot_id == victim
    assert last.pilot_id != victim
    assert last.epoch > first.epoch


async def _is_held(thief: Thief, job_id: int) -> bool:
    return any(held.job_id == job_id for _, held in await thief.held())
