"""`wms top`: jobs by state, sites, pilots and services, live."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli import places
from wms.cli.options import USUAL, Common, Flag, Patience
from wms.cli.printing import console, is_terminal, show, show_json, show_table, table
from wms.cli.session import OK, with_client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from wms.cli.health import Part
    from wms.client import Client
    from wms.messages.replies import PilotLine, SiteLine

STATES = ("STATE", "JOBS>")
PILOTS_SHOWN = 15


def top(
    *,
    once: Flag = False,
    every: Annotated[Patience, Parameter(show_default=lambda _: "2s")] = 2,
    common: Common = USUAL,
) -> int:
    """Watch jobs, services, sites and pilots, live.

    Ctrl-C ends it.

    For example:
      wms top
      wms top --once
      wms top --once --json

    Parameters
    ----------
    once
        Look once, print, and end.
    every
        How often to look.
    """

    async def work(client: "Client") -> int:
        if once or common.json or not is_terminal():
            _show_once(await _look(client, common), common)
            return OK
        await _watch(client, common, every)
        return OK

    return with_client(common, work)


class _Sight:
    """What one look brought."""

    def __init__(
        self,
        counts: dict[str, int],
        sites: "tuple[SiteLine, ...]",
        pilots: "tuple[PilotLine, ...]",
        parts: "Sequence[Part]",
    ) -> None:
        self.counts = counts
        self.sites = sites
        self.pilots = pilots
        self.parts = parts

    def tables(self) -> list[tuple[str, tuple[str, ...], list[list[str]]]]:
        """Return title, headings and rows of each table."""
        from wms.cli.health import PARTS, row

        states = [(state, f"{count:,}") for state, count in sorted(self.counts.items())]
        whole: list[tuple[str, tuple[str, ...], Sequence[Sequence[object]]]] = [
            ("Jobs", STATES, states or [("-", "0")]),
            ("System", PARTS, [row(part) for part in self.parts]),
            ("Sites", places.SITES, places.site_rows(self.sites)),
            ("Pilots", places.PILOTS, places.pilot_rows(self.pilots[:PILOTS_SHOWN])),
        ]
        return [
            (title, heads, [list(map(str, line)) for line in rows]) for title, heads, rows in whole if rows
        ]


async def _look(client: "Client", common: Common) -> _Sight:
    import asyncio

    from wms.cli import health
    from wms.client.selector import select

    counts, sites, pilots, system = await asyncio.gather(
        client.counts(select(everything=True)), client.sites(), client.pilots(), health.look(common)
    )
    return _Sight(counts, sites, pilots, system.parts)


def _show_once(sight: _Sight, common: Common) -> None:
    if common.json:
        show_json(
            {
                "counts": sight.counts,
                "sites": sight.sites,
                "pilots": sight.pilots,
                "system": list(sight.parts),
            }
        )
        return
    for title, heads, rows in sight.tables():
        show(title)
        show_table(heads, rows)
        show()


async def _watch(client: "Client", common: Common, every: float) -> None:
    import asyncio

    from rich.live import Live

    from wms.errors import Unavailable

    with Live(console=console(), screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(_drawn(await _look(client, common)), refresh=True)
            except Unavailable as fault:
                live.update(f"the system does not answer just now: {fault}", refresh=True)
            await asyncio.sleep(every)


def _drawn(sight: _Sight) -> "RenderableType":
    from rich.console import Group

    return Group(*(table(heads, rows, title=title) for title, heads, rows in sight.tables()))
