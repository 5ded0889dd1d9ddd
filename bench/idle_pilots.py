"""`python -m bench.idle_pilots [--pilots N]`: what idle pilots cost a gateway, in memory and processor time.

Each pilot has a stream of orders, and sends the report of an idle agent every five seconds. The gateway is a process of its own, over the
embedded broker; this process plays the pilots, with connections of their own.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from wms.auth.keys import load_key
from wms.auth.token import Claims, mint
from wms.embedded.system import System
from wms.runtime import clock

REPORT_SECONDS = 5.0
SECONDS = 20.0
SITE = "bench"
AT_ONCE = 50


class IdlePilot:
    """One pilot: its stream of orders, and a connection for its reports."""

    def __init__(self, number: int, token: str, host: str, port: int) -> None:
        self.name = f"p-{number}"
        self._head = f"Host: {host}\r\nAuthorization: Bearer {token}\r\n"
        self._place = host, port
        self._writers: list[asyncio.StreamWriter] = []
        self.reports = 0

    async def attach(self) -> None:
        """Open the stream, and wait until the gateway says that it reads the site's inbox."""
        reader, writer = await asyncio.open_connection(*self._place)
        self._writers.append(writer)
        writer.write(f"GET /api/v1/pilots/{self.name}/orders HTTP/1.1\r\n{self._head}\r\n".encode())
        assert b" 200 " in await reader.readline()
        await reader.readuntil(b":\n\n")

    async def report(self) -> None:
        """Send reports, each five seconds after the last."""
        reader, writer = await asyncio.open_connection(*self._place)
        self._writers.append(writer)
        body = f'{{"messages":[{{"type":"report","report_id":"r","pilot_id":"{self.name}","slots":1}}]}}'
        head = f"{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        request = f"POST /api/v1/pilots/{self.name}/messages HTTP/1.1\r\n{head}{body}".encode()
        await asyncio.sleep(REPORT_SECONDS * (hash(self.name) % 1_000) / 1_000)
        while True:
            writer.write(request)
            assert b" 202 " in await reader.readline()
            await reader.readuntil(b'"taken":1}')
            self.reports += 1
            await asyncio.sleep(REPORT_SECONDS)

    def close(self) -> None:
        """Disconnect."""
        for each in self._writers:
            each.close()


async def measure(system: System, count: int) -> None:
    """Attach pilots, and print what the gateway takes without them, with them, and with their reports."""
    process = psutil.Process(system.supervisor.pid_of("gateway"))
    await _tell(process, "without pilots", [])
    parts = urlsplit(system.gateway_url)
    key, now = load_key(system.layout.keys / "pilots.pem"), clock.timestamp()
    pilots = [
        IdlePilot(number, _token(key, number, now), parts.hostname or "", parts.port or 0)
        for number in range(count)
    ]
    began = time.monotonic()
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(each.attach() for each in pilots[first : first + AT_ONCE]))
    print(f"{count:,} pilots attached in {time.monotonic() - began:.1f} s")
    await _tell(process, "with their streams", pilots)
    reporting = [asyncio.create_task(each.report()) for each in pilots]
    await asyncio.sleep(2 * REPORT_SECONDS)
    await _tell(process, "with their reports", pilots)
    for each in reporting:
        each.cancel()
    await asyncio.gather(*reporting, return_exceptions=True)
    for pilot in pilots:
        pilot.close()


def _token(key: object, number: int, now: float) -> str:
    claims = Claims(
        kind="pilot", owner="bench", group="pilot", vo="v", pilot_id=f"p-{number}", site=SITE, ce="ce"
    )
    return mint(key, claims, 3_600, now)  # type: ignore[arg-type] # a signing key


async def _tell(process: psutil.Process, what: str, pilots: list[IdlePilot]) -> None:
    before, reports = process.cpu_times(), sum(each.reports for each in pilots)
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    after, seconds = process.cpu_times(), time.monotonic() - began
    used = after.user + after.system - before.user - before.system
    sent = sum(each.reports for each in pilots) - reports
    print(
        f"{what}: {process.memory_info().rss / 2**20:,.0f} MiB, {100 * used / seconds:.1f} % of a processor, "
        f"{sent / seconds:,.0f} reports a second"
    )


async def _main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="wms-bench-") as place:
        async with System(Path(place), durable=False, services=("gateway",)) as system:
            await measure(system, count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pilots", type=int, default=5_000)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_main(parser.parse_args().pilots))
