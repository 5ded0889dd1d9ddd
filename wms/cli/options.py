"""The options that many commands share: which system, how long to wait, how to print, and which jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.quantities import moment
from wms.quantities import mebibytes, seconds, size_in_bytes

if TYPE_CHECKING:
    from wms.messages.commands import Selector

COMMON = Group("Common options", sort_key=90)
SELECTION = Group("Which jobs", sort_key=10)


def _by(parse: Callable[[str], int]) -> Callable[[Any, Sequence[Any]], int]:
    return lambda _, tokens: parse(tokens[0].value)


class WithinBounds:
    """A validator that refuses option values outside of bounds, both included. `words` describes the bounds in the error message."""

    def __init__(self, low: float, high: float, words: str = "") -> None:
        self.low = low
        self.high = high
        self.words = words or f"{low:,} to {high:,}"

    def __call__(self, _: Any, value: Any) -> None:
        """Raise ValueError for a value outside of the bounds; None is accepted."""
        if value is not None and not self.low <= value <= self.high:
            raise ValueError(f"Must be {self.words}.")


Duration = Annotated[int, Parameter(converter=_by(seconds))]
"""The type of a duration in seconds, written as `90`, `10m` or `1h30m`."""


def _moment(_: Any, tokens: Sequence[Any]) -> datetime:
    from wms.runtime import clock

    return moment(tokens[0].value, clock.now())


Moment = Annotated[datetime, Parameter(converter=_moment)]
"""The type of a time, written as a date and time, or as a duration before now such as `2h`."""
Patience = Annotated[
    int, Parameter(converter=_by(seconds), validator=WithinBounds(1, 365 * 86_400, "1s to 365d"))
]
"""The type of a time to wait in seconds, written as `90`, `10m` or `1h30m`: 1 second to 365 days."""
Slots = Annotated[int | None, Parameter(validator=WithinBounds(1, 10_000))]
"""The type of the number of jobs that may run at a time."""
Most = Annotated[int, Parameter(validator=WithinBounds(0, 10_000_000))]
"""The type of the number of items to show at most; 0 for all."""
Memory = Annotated[int, Parameter(converter=_by(mebibytes))]
"""The type of a size in MiB, written as `512M` or `2G`."""
Bytes = Annotated[int, Parameter(converter=_by(size_in_bytes))]
"""The type of a size in bytes, written as `4096` or `64K`."""
Flag = Annotated[bool, Parameter(negative=())]
Many = Annotated[list[str], Parameter(negative=())]


@Parameter(name="*", group=COMMON)
@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every command has."""

    data: Annotated[Path | None, Parameter(env_var="WMS_DATA")] = None
    """The system's data directory; default: ~/.local/share/wms."""

    profile: Annotated[str, Parameter(env_var="WMS_PROFILE", show_default=False)] = ""
    """The profile whose system to use, instead of a data directory; `wms profiles` lists them."""

    token: Annotated[Path | None, Parameter(env_var="WMS_TOKEN")] = None
    """The file of the token to use; default: the one that the data directory names."""

    json: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """Print JSON on standard output, for programs."""

    timeout: Annotated[Patience, Parameter(show_default=lambda _: "30s")] = 30
    """The longest wait for an answer of the system."""

    def __post_init__(self) -> None:
        """Set the data directory to the profile's. Raise Rejected if both a profile and a data directory are given."""
        if self.profile:
            from wms.client.settings import check_one_system, profile_directory

            check_one_system(self.profile, self.data)
            object.__setattr__(self, "data", profile_directory(self.profile))


@Parameter(name="*", group=SELECTION)
@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """The options that select jobs. A job is selected if it meets all given options, and the given ids."""

    owner: str | None = None
    """Jobs of this owner."""

    state: Annotated[list[str], Parameter(negative=(), show_default=False)] = field(default_factory=list)
    """Jobs in this state, such as Waiting; live means all states before the end, ended all others but Deleted. May be repeated."""

    site: str | None = None
    """Jobs at this site."""

    name: str | None = None
    """Jobs with this name; * and ? stand for any characters: 'sim*'."""

    group: str | None = None
    """Jobs of this job group, which `wms submit --group` names."""

    submission: str | None = None
    """Jobs of your submission with this id, which `wms submit --id` names."""

    since: Moment | None = None
    """Jobs that were submitted or changed their state since this time: 2h (ago), 2026-11-22, or 2026-11-22T08:00:00Z."""

    all: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """All jobs that you may act on."""

    def selector(self, jobs: Sequence[str], *, default_all: bool = False) -> "Selector":
        """Return a selector of the jobs with the ids `jobs` (none: any id) that meet the given options.

        If neither ids nor options are given, all jobs are selected if `default_all` is True; else raise Rejected.
        """
        from wms.client.selector import select
        from wms.errors import Rejected
        from wms.messages.commands import Selector

        chosen = select(
            jobs,
            owner=self.owner,
            state=self.state,
            site=self.site,
            name=self.name,
            group=self.group,
            submission=self.submission,
            since=self.since,
            everything=self.all,
        )
        if chosen != Selector():
            return chosen
        if default_all:
            return select(everything=True)
        raise Rejected(
            "NOTHING_SELECTED",
            "no job is named",
            "give ids such as 7 or 100-200, --group, --state, --name, ... or --all",
        )


Jobs = Annotated[str, Parameter(group=SELECTION, help="Ids and ranges: 7 100-200 1,5,9-12")]
"""The type of positional arguments that name jobs."""

NO_CHOICE = SelectionOptions()
USUAL = CommonOptions()
"""The common options with their default values, for commands that are given none of them."""
