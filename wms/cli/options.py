"""The options that many commands share: where the system is, how long to wait, what to print, which jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.quantities import mebibytes, seconds, size_in_bytes

if TYPE_CHECKING:
    from wms.messages.commands import Selector

COMMON = Group("Common options", sort_key=90)
SELECTION = Group("Which jobs", sort_key=10)


def _by(parse: Callable[[str], int]) -> Callable[[Any, Sequence[Any]], int]:
    return lambda _, tokens: parse(tokens[0].value)


Duration = Annotated[int, Parameter(converter=_by(seconds))]
"""Seconds, written as `90`, `10m` or `1h30m`."""
Memory = Annotated[int, Parameter(converter=_by(mebibytes))]
"""MiB, written as `512M` or `2G`."""
Bytes = Annotated[int, Parameter(converter=_by(size_in_bytes))]
"""Bytes, written as `4096` or `64K`."""
Flag = Annotated[bool, Parameter(negative=())]
Many = Annotated[list[str], Parameter(negative=())]


@Parameter(name="*", group=COMMON)
@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    data: Annotated[Path | None, Parameter(env_var="WMS_DATA")] = None
    """The system's data directory; ~/.local/share/wms unless said."""

    json: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """Print JSON on standard output, for programs."""

    timeout: Annotated[Duration, Parameter(show_default=lambda _: "30s")] = 30
    """How long to wait for an answer."""


@Parameter(name="*", group=SELECTION)
@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which jobs, besides their ids: those for which everything said holds."""

    owner: str | None = None
    """Jobs of this owner."""

    state: Annotated[list[str], Parameter(negative=(), show_default=False)] = field(default_factory=list)
    """Jobs in this state, such as Waiting, or live, or ended; may be repeated."""

    site: str | None = None
    """Jobs at this site."""

    name: str | None = None
    """Jobs of this name; * and ? stand for any characters: 'sim*'."""

    all: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """All jobs that you may act on. Must be said, never assumed."""

    def selector(self, jobs: Sequence[str], *, default_all: bool = False) -> "Selector":
        """Return the selector, or raise Rejected when nothing is named."""
        from wms.client.selector import select
        from wms.errors import Rejected
        from wms.messages.commands import Selector

        chosen = select(
            jobs, owner=self.owner, state=self.state, site=self.site, name=self.name, everything=self.all
        )
        if chosen != Selector():
            return chosen
        if default_all:
            return select(everything=True)
        raise Rejected(
            "NOTHING_SELECTED",
            "no job is named",
            "give ids such as 7 or 100-200, --state, --name, ... or --all",
        )


Jobs = Annotated[str, Parameter(group=SELECTION, help="Ids and ranges: 7 100-200 1,5,9-12")]
"""Positional words that name jobs."""

NO_CHOICE = Chosen()
USUAL = Common()
"""The options' defaults."""
