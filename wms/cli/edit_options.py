"""The options of `wms edit` and `wms reschedule` that change the requirements of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.fields import fields_of, makes, options_of, sets
from wms.cli.options import Bytes, Duration, Many, Memory
from wms.cli.submit_options import OPTIONS

if TYPE_CHECKING:
    from wms.client import Client

CHANGES = Group("What changes", sort_key=5)


@Parameter(name="*", group=CHANGES)
@dataclass(frozen=True, kw_only=True)
class EditOptions:
    """The options that change jobs' requirements. A requirement whose option is not given stays as it is."""

    cpu_time: Duration | None = sets("cpu_time")
    """Processor time: 600, 10m, 1h30m."""

    wall_time: Duration | None = sets("wall_time")
    """Wall-clock time: 600, 10m, 1h30m."""

    memory: Memory | None = sets("memory_mb")
    """Memory: 512M, 2G."""

    disk: Memory | None = sets("disk_mb")
    """Disk space in the job's directory: 500M, 10G."""

    max_memory: Memory | None = sets("max_memory_mb")
    """The most memory that a job may use, such as 4G, if the node has so much."""

    processors: int | None = sets("processors")
    """Processors on one node."""

    min_processors: int | None = sets("min_processors")
    """The fewest processors that a job needs, in place of --processors."""

    max_processors: int | None = sets("max_processors")
    """The most processors that a job can use, with --min-processors."""

    gpus: int | None = sets("gpus")
    """GPUs on one node."""

    tag: Many | None = sets("tags")
    """A tag that the resource must have. May be repeated."""

    platform: Many | None = sets("platforms")
    """One of these platforms. May be repeated."""

    to_site: Many | None = sets("sites")
    """Only at these sites. May be repeated."""

    banned_site: Many | None = sets("banned_sites")
    """Not at these sites. May be repeated."""

    ce: Many | None = sets("grid_ces")
    """Only at these computing elements. May be repeated."""

    station: Many | None = sets("stations")
    """Only at sites that advertise one of these SAM stations. May be repeated."""

    grid_middleware: Many | None = sets("grid_middlewares")
    """Only at computing elements that get their pilots by one of these middlewares. May be repeated."""

    pilot_type: Many | None = sets("pilot_types")
    """Only for pilots of one of these types, such as private. May be repeated."""

    job_type: str | None = sets("job_type")
    """The job type; sites may refuse types."""

    requirements: str | None = sets("requirements")
    """A ClassAd expression that must be true of the resource."""

    rank: str | None = sets("rank")
    """A ClassAd expression with a number as its value. Resources with a greater number are preferred."""

    input: Annotated[Many | None, Parameter(name=("--input", "-i"))] = makes("input_sandbox")
    """A further file or directory to send along. It replaces one of the same name. May be repeated."""

    output: Annotated[Many | None, Parameter(name=("--output", "-o"))] = sets("output_sandbox")
    """A pattern of files to keep, in place of the present patterns. May be repeated."""

    stdout_limit: Bytes | None = sets("stdout_limit")
    """The size of standard output that is kept: 64K, 10M."""

    stderr_limit: Bytes | None = sets("stderr_limit")
    """The size of standard error that is kept: 64K, 10M."""

    after: Many | None = sets("after")
    """Ids of jobs that must be Done before the edited jobs start. They replace the present ids. Only for held jobs. May be repeated."""

    after_any: Many | None = sets("after_any")
    """Ids of jobs that must have ended, in any state, before the edited jobs start. May be repeated."""

    priority: int | None = sets("priority")
    """The priority among your own jobs: 0 to 10."""

    retries: int | None = sets("retries")
    """How many times a job is started again because its program failed."""

    max_attempts: int | None = sets("max_attempts")
    """How many attempts a job has before it fails for good."""

    unset: Many | None = None
    """A requirement to drop, by the name of its option: site, memory, tag. May be repeated."""

    def fields(self) -> dict[str, Any]:
        """Return the changed fields of a description with their new values; input files are not among them.

        Raise Rejected if --unset names no requirement, or one that another option sets.
        """
        changes = fields_of(self)
        return {**_unset(self.unset or (), {*changes, *(["input_sandbox"] if self.input else [])}), **changes}

    def is_empty(self) -> bool:
        """Return whether none of these options is given."""
        return self == EditOptions()


def _unset(words: Sequence[str], changed: set[str]) -> dict[str, Any]:
    """Return the fields that the words of --unset name, each with its default value.

    Raise Rejected if a name is unknown, or is in `changed`, the fields that other options set.
    """
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


def field_of(option: str) -> str:
    """Return the description's field that an option of `wms edit` or `wms submit` sets. `option` has no leading dashes."""
    name = option.replace("-", "_")
    return next(
        (field for field, each in (*options_of(EditOptions).items(), *OPTIONS.items()) if each == name), name
    )


async def with_files(client: "Client", changes: EditOptions, fields: dict[str, Any]) -> dict[str, Any]:
    """Upload the files of --input as one archive. Return `fields` with `input_sandbox` set to the archive, unchanged without such files."""
    if not changes.input:
        return fields
    return {**fields, "input_sandbox": [await client.upload(changes.input)]}


NO_CHANGES = EditOptions()
