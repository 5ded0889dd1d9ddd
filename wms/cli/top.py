"""`wms top`: a live view of jobs, sites, pilots and services."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wms.cli import sites_queues_pilots
from wms.cli.options import USUAL, CommonOptions, Flag, Patience
from wms.cli.printing import console, drawn_rows, is_terminal, show, show_json, show_table
from wms.cli.session import OK, with_client

if TYPE_CHECKING:
    from wms.cli.health import ProcessHealth
    from wms.cli.top_screen import JobRates, ScreenSection, ScreenView
    from wms.client import Client
    from wms.messages.replies import JobLine, PilotLine, SiteLine, SweepLine

JOBS_SHOWN = 200


def top(
    *,
    once: Flag = False,
    every: Annotated[Patience, Parameter(show_default=lambda _: "2s")] = 2,
    common: CommonOptions = USUAL,
) -> int:
    """Watch jobs, services, sites and pilots, live.

    The upper part shows the jobs by state, how many end a second, and why jobs failed within the last hour. The lower part has lists of jobs that have not ended, sites, pilots and services; a terminal of fewer than 40 lines shows one list at a time.

    Keys: tab or the arrows change the list; j and k, up and down, space and b scroll it; ? shows all keys; q ends.

    For example:
      wms top
      wms top --every 10s
      wms top --once
      wms top --once --json

    Parameters
    ----------
    once
        Print the present state once, and end.
    every
        The time between two polls.
    """

    async def work(client: "Client") -> int:
        if once or common.json or not is_terminal():
            _show_once(await _look(client, common), common)
        else:
            await _watch(client, common, every)
        return OK

    return with_client(common, work)


class _Sight:
    """What one poll of the system returned for the live view: jobs, sites, pilots and processes."""

    def __init__(
        self,
        pace: "JobRates",
        jobs: "list[JobLine | SweepLine]",
        sites: "tuple[SiteLine, ...]",
        pilots: "tuple[PilotLine, ...]",
        parts: "tuple[ProcessHealth, ...]",
    ) -> None:
        self.pace = pace
        self.jobs = jobs
        self.sites = sites
        self.pilots = pilots
        self.parts = parts

    def sections(self) -> "list[ScreenSection]":
        """Return the sections of the screen in their order: jobs, sites, pilots, services."""
        from wms.cli.health import PARTS, row
        from wms.cli.job_table import job_table
        from wms.cli.top_screen import ScreenSection

        whole: list[tuple[str, Any, Any, str]] = [
            ("jobs", *job_table(self.jobs), "none that has not ended"),
            (
                "sites",
                sites_queues_pilots.SITES,
                sites_queues_pilots.site_rows(self.sites),
                "none advertises itself",
            ),
            ("pilots", sites_queues_pilots.PILOTS, sites_queues_pilots.pilot_rows(self.pilots), "none"),
            ("services", PARTS, [row(part) for part in self.parts], "none"),
        ]
        return [
            ScreenSection(title, columns, [list(map(str, line)) for line in rows], empty)
            for title, columns, rows, empty in whole
        ]


async def _look(client: "Client", common: CommonOptions) -> _Sight:
    import asyncio

    from wms.cli import health
    from wms.cli.jobs import newest_with_sweeps

    pace, jobs, sites, pilots, system = await asyncio.gather(
        _pace(client),
        newest_with_sweeps(client, "live", JOBS_SHOWN),
        client.sites(),
        client.pilots(),
        health.look(common),
    )
    return _Sight(pace, jobs, sites, pilots, system.parts)


async def _pace(client: "Client") -> "JobRates":
    import asyncio
    from datetime import timedelta

    from wms.cli.top_screen import JobRates
    from wms.client.selector import select
    from wms.runtime import clock

    at = clock.now()
    ended = ("Done", "Failed", "Killed")
    now, minute, hour = await asyncio.gather(
        client.counts(select(state="live")),
        client.counts(select(state=ended, since=at - timedelta(minutes=1))),
        client.reasons(select(state=ended, since=at - timedelta(hours=1))),
    )
    return JobRates(
        now=now,
        last_minute=minute,
        failures=hour.get("Failed", {}),
        done_last_hour=sum(hour.get("Done", {}).values()),
    )


def _show_once(sight: _Sight, common: CommonOptions) -> None:
    from wms.cli.top_screen import pace_lines

    if common.json:
        show_json(
            {
                "counts": sight.pace.now,
                "last_minute": sight.pace.last_minute,
                "failures_last_hour": sight.pace.failures,
                "done_last_hour": sight.pace.done_last_hour,
                "jobs": sight.jobs,
                "sites": sight.sites,
                "pilots": sight.pilots,
                "system": list(sight.parts),
            }
        )
        return
    for line in pace_lines(sight.pace):
        show(line)
    for section in sight.sections():
        show(f"\n{section.title}")
        show_table(section.columns, section.rows, empty=section.empty)


async def _watch(client: "Client", common: CommonOptions, every: float) -> None:
    import asyncio
    from contextlib import suppress

    from rich.live import Live

    from wms.cli.keyboard import keys
    from wms.cli.top_screen import ScreenView, pressed
    from wms.errors import Unavailable

    view, sight, fault = ScreenView(), await _look(client, common), ""
    loop = asyncio.get_running_loop()
    with Live(console=console(), screen=True, auto_refresh=False) as live, keys(loop) as typed:
        looking = asyncio.create_task(_look(client, common))
        due = loop.time() + every
        while not view.ended:
            height = live.console.height
            view = _draw(live, sight, view, fault)
            key = ""
            with suppress(TimeoutError):
                async with asyncio.timeout(min(0.5, max(0.05, due - loop.time()))):
                    key = await typed.get()
            view = pressed(view, key, len(sight.sections()), max(1, height - 8))
            if looking.done():
                try:
                    sight, fault = looking.result(), ""
                except Unavailable as error:
                    fault = f"the system does not answer just now: {error}"
            if looking.done() and loop.time() >= due:
                looking, due = asyncio.create_task(_look(client, common)), loop.time() + every
        looking.cancel()


def _draw(live: Any, sight: _Sight, view: "ScreenView", fault: str) -> "ScreenView":
    from wms.cli.top_screen import Row, screen

    width, height = live.console.width, live.console.height
    rows, view = screen(sight.pace, sight.sections(), view, width, height - bool(fault))
    if fault:
        rows = [Row([fault[:width]], strong=True), *rows]
    live.update(drawn_rows([(row.cells, row.strong) for row in rows]), refresh=True)
    return view
