"""The options that change what jobs ask for: of `wms edit`, and of `wms reschedule`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.fields import field_of, fields_of
from wms.cli.options import Bytes, Duration, Memory

if TYPE_CHECKING:
    from wms.client import Client

CHANGES = Group("What changes", sort_key=5)
Several = Annotated[list[str], Parameter(negative=(), show_default=False)]


@Parameter(name="*", group=CHANGES)
@dataclass(frozen=True, kw_only=True)
class Changes:
    """What the jobs ask for from now on; what is not said stays as it is."""

    cpu_time: Duration | None = None
    """Processor time: 600, 10m, 1h30m."""

    wall_time: Duration | None = None
    """Wall-clock time: 600, 10m, 1h30m."""

    memory: Memory | None = None
    """Memory: 512M, 2G."""

    disk: Memory | None = None
    """Disk space in the job's directory: 500M, 10G."""

    max_memory: Memory | None = None
    """Memory that it may use at most where there is so much."""

    processors: int | None = None
    """Processors on one node."""

    min_processors: int | None = None
    """In place of --processors: how many it needs at least."""

    max_processors: int | None = None
    """With --min-processors: how many it can use at most."""

    tag: Several = field(default_factory=list)
    """What the resource must have. May be repeated."""

    platform: Several = field(default_factory=list)
    """One of these platforms. May be repeated."""

    to_site: Several = field(default_factory=list)
    """Only at these sites. May be repeated."""

    banned_site: Several = field(default_factory=list)
    """Not at these sites. May be repeated."""

    ce: Several = field(default_factory=list)
    """Only at these computing elements. May be repeated."""

    station: Several = field(default_factory=list)
    """Where the site advertises one of these SAM stations. May be repeated."""

    grid_middleware: Several = field(default_factory=list)
    """Only where pilots are sent by one of these middlewares. May be repeated."""

    pilot_type: Several = field(default_factory=list)
    """Only for pilots of one of these types, such as private. May be repeated."""

    job_type: str | None = None
    """The type of the jobs, which sites may refuse."""

    requirements: str | None = None
    """A ClassAd expression that must be true of the resource."""

    rank: str | None = None
    """A ClassAd expression: pilots go rather where its number is greater."""

    input: Annotated[Several, Parameter(name=("--input", "-i"))] = field(default_factory=list)
    """A file or directory to send along besides what was sent; of equal names this one counts. May be repeated."""

    output: Annotated[Several, Parameter(name=("--output", "-o"))] = field(default_factory=list)
    """Pattern of files to keep, in place of the patterns so far. May be repeated."""

    stdout_limit: Bytes | None = None
    """How much of the standard output is kept: 64K, 10M."""

    stderr_limit: Bytes | None = None
    """How much of the standard error is kept."""

    after: Several = field(default_factory=list)
    """Ids of jobs that must be Done before they start, in place of those so far; of held jobs. May be repeated."""

    after_any: Several = field(default_factory=list)
    """Likewise ids of jobs that must have ended, whichever way. May be repeated."""

    priority: int | None = None
    """0 to 10 among your own jobs."""

    max_attempts: int | None = None
    """How often a job may be started before it fails for good."""

    unset: Several = field(default_factory=list)
    """What is asked for no more, by the name of its option: site, memory, tag. May be repeated."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of a description that change, without the input files; Rejected for an unknown word."""
        changes = fields_of(vars(self))
        return {**_unset(self.unset, {*changes, *(["input_sandbox"] if self.input else [])}), **changes}

    def is_empty(self) -> bool:
        """Tell whether nothing changes."""
        return self == Changes()


def _unset(words: Sequence[str], changed: set[str]) -> dict[str, Any]:
    """Return the fields that these words name with the values that they have unless they are said."""
    from wms.errors import Rejected, shown
    from wms.jobdesc.changes import CHANGEABLE, default_of

    found = {}
    for word in (each for words_said in words for each in words_said.split(",")):
        name = field_of(word.strip().removeprefix("--"))
        if name not in CHANGEABLE:
            raise Rejected(
                "BAD_OPTION",
                f'--unset "{shown(word, 60)}" names nothing that can be unset',
                "give the name of an option: memory, site, tag",
            )
        if name in changed:
            raise Rejected(
                "BAD_OPTION", f"--unset {shown(word, 60)} stands beside its option", "say one of them"
            )
        found[name] = default_of(name)
    return found


async def with_files(client: "Client", changes: Changes, fields: dict[str, Any]) -> dict[str, Any]:
    """Upload the input files, and return the fields with them."""
    if not changes.input:
        return fields
    return {**fields, "input_sandbox": [await client.upload(changes.input)]}


NO_CHANGES = Changes()
