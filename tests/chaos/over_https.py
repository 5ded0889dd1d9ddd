"""A user who comes through the gateway while everything is killed: submissions under their ids, and the events of the own jobs."""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import msgspec

from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import Client, JobDescription
from wms.client.settings import GatewayAddress
from wms.db.database import GONE
from wms.errors import Unavailable

OWNER = "remote"
PATIENCE = 60.0
HELD = JobDescription(executable="/bin/true", cpu_time=60)
JOBS = "select job_id from job where owner = $1"
_PREFIX = "/api/v1/events"


class RemoteUser:
    """Submits one job after the other, held so that none runs, and follows them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._settings = target.settings(OWNER)
        self._url = target.system.gateway_url
        self.taken: list[int] = []
        self.resets = 0
        self.moves: set[tuple[int, int]] = set()
        """What was told since the last reset."""
        self.faults: list[str] = []
        self._last_id = ""

    async def run(self) -> None:
        """Go on until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._submit_on())
            group.create_task(self._follow_on())

    async def settle(self) -> None:
        """Wait until the last job that was taken is told of; that it never is, is a fault."""
        try:
            await eventually(
                lambda: self.taken and self.taken[-1] in {job for job, _ in self.moves}, PATIENCE
            )
        except AssertionError:
            self.faults.append(f"of job {self.taken[-1:]} over HTTPS no event came in {PATIENCE:g} s")

    async def check(self) -> list[str]:
        """Return what did not hold: each acknowledged job is there once, and no other but one that was under way at the end."""
        connection = await asyncpg.connect(self._target.database)
        try:
            there = {row["job_id"] for row in await connection.fetch(JOBS, OWNER)}
        finally:
            await connection.close()
        if len(set(self.taken)) != len(self.taken) or not set(self.taken) <= there <= self._and_one(there):
            self.faults.append(f"over HTTPS {len(self.taken)} jobs were taken, {len(there)} are there")
        return self.faults

    def _and_one(self, there: set[int]) -> set[int]:
        beyond = there - set(self.taken)
        return there if len(beyond) <= 1 else set(self.taken)

    def text(self) -> str:
        """Return it for people."""
        return f"over HTTPS: {len(self.taken):,} jobs taken, {len(self.moves):,} moves told since the last of {self.resets} resets"

    async def _submit_on(self) -> None:
        settings = msgspec.structs.replace(self._settings, gateway=GatewayAddress(url=self._url))
        numbers = itertools.count()
        number = next(numbers)
        while True:
            # The gateway may just have been killed, also when a connection is opened.
            with contextlib.suppress(Unavailable):
                async with Client.connect(settings, timeout=PATIENCE) as client:
                    while True:
                        self.taken += (await client.submit(HELD, id=f"remote-{number}", hold=True)).job_ids()
                        number = next(numbers)
                        await asyncio.sleep(0.1)

    async def _follow_on(self) -> None:
        token = Path(self._settings.auth.token_file).read_text("ascii").strip()
        async with aiohttp.ClientSession() as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError, *GONE):
                    await self._follow(session, token)
                await asyncio.sleep(0.1)

    async def _follow(self, session: aiohttp.ClientSession, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        async with session.get(
            self._url + _PREFIX, headers=headers, timeout=aiohttp.ClientTimeout(total=None, sock_read=30)
        ) as answer:
            block: dict[str, str] = {}
            async for line in answer.content:
                name, _, value = line.decode().strip().partition(": ")
                if name:
                    block[name] = value
                    continue
                self._take(block)
                block = {}

    def _take(self, block: dict[str, str]) -> None:
        self._last_id = block.get("id", self._last_id)
        match block.get("event"):
            case "reset":
                self.resets += 1
                self.moves.clear()
            case "jobs-queued" | "job-event" | "jobs-moved":
                self._note(msgspec.json.decode(block["data"]))

    def _note(self, fact: dict[str, Any]) -> None:
        for event in fact.get("events", [fact] if "job_id" in fact else []):
            move = event["job_id"], event["seq"]
            if move in self.moves:
                self.faults.append(f"the move {move} was told twice")
            self.moves.add(move)
