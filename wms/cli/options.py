"""The options that many commands share: the system, the time to wait, the output, and the choice of jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.quantities import mebibytes, moment, seconds, size_in_bytes

if TYPE_CHECKING:
    from wms.messages.commands import Selector

COMMON = Group("Common options", sort_key=90)
SELECTION = Group("Which jobs", sort_key=10)


def _by(parse: Callable[[str], int]) -> Callable[[Any, Sequence[Any]], int]:
    return lambda _, tokens: parse(tokens[0].value)


class Within:
    """A validator that refuses option values outside of inclusive bounds; `words` names the bounds in the error."""

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
"""The type of a time, written as such or as a duration before now."""
Patience = Annotated[int, Parameter(converter=_by(seconds), validator=Within(1, 365 * 86_400, "1s to 365d"))]
"""The type of a wait in seconds, written as `90`, `10m` or `1h30m`; at least 1."""
Slots = Annotated[int | None, Parameter(validator=Within(1, 10_000))]
"""The type of a number of jobs that run concurrently."""
Most = Annotated[int, Parameter(validator=Within(0, 10_000_000))]
"""The type of the greatest number of items to show."""
Memory = Annotated[int, Parameter(converter=_by(mebibytes))]
"""The type of a size in MiB, written as `512M` or `2G`."""
Bytes = Annotated[int, Parameter(converter=_by(size_in_bytes))]
"""The type of a size in bytes, written as `4096` or `64K`."""
Flag = Annotated[bool, Parameter(negative=())]
Many = Annotated[list[str], Parameter(negative=())]


@Parameter(name="*", group=COMMON)
@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every command."""

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
        """Take the directory of the profile as the data directory. Raise Rejected if both are given."""
        if self.profile:
            from wms.client.settings import check_one_system, profile_directory

            check_one_system(self.profile, self.data)
            object.__setattr__(self, "data", profile_directory(self.profile))


@Parameter(name="*", group=SELECTION)
@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The options that select jobs besides their ids. A job must meet all given options."""

    owner: str | None = None
    """Jobs of this owner."""

    state: Annotated[list[str], Parameter(negative=(), show_default=False)] = field(default_factory=list)
    """Jobs in this state, such as Waiting; live and ended stand for several. May be repeated."""

    site: str | None = None
    """Jobs at this site."""

    name: str | None = None
    """Jobs with this name; * and ? stand for any characters: 'sim*'."""

    group: str | None = None
    """Jobs of this job group, which `wms submit --group` names."""

    submission: str | None = None
    """Jobs of your submission with this id, which `wms submit --id` names."""

    since: Moment | None = None
    """Jobs that were submitted or changed their state since this time: 2h (ago), 2026-11-22, or 2026-11-22T08:00."""

    all: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """All jobs that you may act on."""

    def selector(self, jobs: Sequence[str], *, default_all: bool = False) -> "Selector":
        """Return the selector of the jobs with these ids that also meet the given options.

        If nothing is chosen, return the selector of all jobs if `default_all` is True, else raise Rejected.
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

NO_CHOICE = Chosen()
USUAL = Common()
"""The common options with their default values."""
