"""The one job description: every language is read into it, and every service knows a job by it alone."""

import hashlib
from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import (
    Bytes,
    Count,
    CpuTime,
    Digest,
    JobNumber,
    Line,
    LongText,
    Measure,
    Megabytes,
    Name,
    Names,
    TextOfJob,
    Whole,
)
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.staged_file import Inputs, Outputs

MIB = 1024 * 1024
INDEX_SERVERS_LIMIT = 20

Plain: TypeAlias = bool | Whole | Measure | LongText
Attribute: TypeAlias = Plain | Annotated[tuple[Plain, ...], msgspec.Meta(max_length=100)]
"""What a job tells of itself to the expressions of sites."""
Values: TypeAlias = Annotated[tuple[TextOfJob, ...], msgspec.Meta(max_length=1_000_000)]
"""One for each job of an array."""
JobIds: TypeAlias = Annotated[tuple[JobNumber | TextOfJob, ...], msgspec.Meta(max_length=1_000)]
"""Ids of jobs, and lists of ids and ranges as text."""


class SandboxRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An archive in the sandbox store, known by its content."""

    sha256: Digest
    """64 lower-case hexadecimal digits."""
    size: Bytes
    """Bytes."""
    directory: Name = ""
    """Of the job's directory the one that it is unpacked into; empty: the job's directory itself."""


class JobDescription(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One job, or an array of jobs that differ by their index alone.

    Who owns the job is not here: owner, group and VO come from the verified token. An empty tuple of names asks for
    nothing, so any value will do. The defaults are DIRAC's where DIRAC has one.
    """

    executable: Line
    """A path relative to the job's directory, an absolute path, or a name looked up in PATH."""
    arguments: Annotated[tuple[TextOfJob, ...], msgspec.Meta(max_length=10_000)] = ()
    environment: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=1_000)] = {}
    name: Name = ""
    priority: Count = 1
    """0 to 10, among the jobs of one owner; 0 is almost never, 10 almost always first."""

    cpu_time: CpuTime = 86_400
    """Seconds of processor time, all processors together; DIRAC's default. Chooses the queue, and is enforced."""
    wall_time: CpuTime | None = None
    """Seconds by the clock on the wall; None leaves it to the resource's own limit."""
    memory_mb: Megabytes | None = None
    """MiB of resident memory of the whole process tree: asked for when matching (DIRAC's MinRAM), and the limit that is
    enforced when running unless `max_memory_mb` is another."""
    max_memory_mb: Megabytes | None = None
    """MiB that the job may use at most where the resource has them (DIRAC's MaxRAM): enforced when running, not matched by."""
    disk_mb: Megabytes | None = None
    """MiB in the job's directory: asked for when matching of resources that tell their disk, enforced when running."""
    processors: Count = 1
    """How many it needs, and gets."""
    min_processors: Count | None = None
    """In place of `processors`: how many it needs at least."""
    max_processors: Count | None = None
    """With `min_processors`: how many it can use at most; None: as many as there are."""
    whole_node: bool = False
    """Whether it wants a node of its own: all that a pilot has, of pilots whose element says that they have whole nodes."""

    sites: Names = ()
    banned_sites: Names = ()
    grid_ces: Names = ()
    stations: Names = ()
    """SAM stations: it may run where the ad names one of them."""
    grid_middlewares: Names = ()
    """How its pilots may be sent; those that are there already are not looked at by this."""
    platforms: Names = ()
    tags: Names = ()
    """What the resource must have, all of them."""
    job_type: Name = "User"
    pilot_types: Names = ()
    submit_pools: Names = ()
    setup: Name = "default"
    requirements: LongText = ""
    """A ClassAd expression that must be true of the resource: `other.GlueCEPolicyMaxCPUTime > 60`."""
    rank: LongText = ""
    """A ClassAd expression: pilots go rather where its number is greater."""
    attributes: Annotated[dict[Name, Attribute], msgspec.Meta(max_length=100)] = {}
    """What the expressions of sites may look at, besides what this description says of itself; values alone."""

    max_attempts: Count = 3
    """How many times the job may be started before it fails for good."""

    input_sandbox: Annotated[tuple[SandboxRef, ...], msgspec.Meta(max_length=100)] = ()
    """Unpacked into the job's directory, in this order."""
    input_parameters: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)] = ()
    """Parameters that give each job of a sweep an archive of its own: each value is `sha256:size` of one in the sandbox store,
    which is unpacked after `input_sandbox`."""
    output_sandbox: Annotated[tuple[Line, ...], msgspec.Meta(max_length=1_000)] = ()
    """Patterns (`*`, `?`, `[...]`, `**`) of files to keep, relative to the job's directory."""
    inputs: Inputs = ()
    """Files that are fetched by URL before the payload starts. The job is held if one cannot come."""
    outputs: Outputs = ()
    """Files that are sent to URLs after the payload has ended well. Each appears whole or not at all."""
    stdin: Line = ""
    """A file of the job's directory from which the payload reads its standard input; empty for none."""
    stdout: Line = ""
    """The name that the standard output gets in the job's directory, for `outputs` and patterns. It is kept as `stdout.txt` too."""
    stderr: Line = ""
    """The name that the standard error gets in the job's directory; it is kept as `stderr.txt` too."""
    stdout_limit: Bytes = 10 * MIB
    """Bytes of standard output that are kept; the rest is dropped and the drop is said."""
    stderr_limit: Bytes = 10 * MIB

    job_group: Name = ""
    """A name that jobs share which belong together; to select them by."""

    after: JobIds = ()
    """Jobs that must be Done before it starts: ids, and texts such as `"7,100-200"`. Until then it is Held (`DEPENDENCY`)."""
    after_any: JobIds = ()
    """Jobs that must have ended before it starts, whichever way."""
    input_from: JobIds = ()
    """Jobs whose outputs it gets, each in a directory of its job directory that is named by the job's id: `17/out.root`. They must
    be Done before it starts, as those in `after`."""

    array: Count | None = None
    """Make so many jobs of this description; `{n}` stands for 0, 1, 2, ... in each."""
    parameters: Annotated[dict[Name, Values], msgspec.Meta(max_length=20)] = {}
    """Lists of one length, taken together: job n has the n-th value of each, where `{its name}` stands.

    A file may say `{start = 10, step = 5, factor = 2, count = 3}` in place of the list of 10, 25 and 55: each value is the one
    before times the factor, plus the step. Without a count there are as many as the array has jobs.
    """

    preferences: JobPreferences | None = None
    """With them the broker places the job: it chooses the element that delivers first, and may reserve slots there."""
    index_servers: Annotated[tuple[Line, ...], msgspec.Meta(max_length=INDEX_SERVERS_LIMIT)] = ()
    """URLs of index servers at which the broker looks for elements, besides those that it knows."""
    dispatch: Literal["", "pilot", "direct"] = ""
    """Empty: any pilot takes the job, or a bound pilot if the broker places it. `pilot`: a pilot that is bound to the job. `direct`:
    the job itself is sent to the batch system, for sites whose nodes have no way out."""
    coallocate: bool = False
    """Whether the jobs of the array, 2 to 20, start at the same time, each in a reservation at another element: all, or none."""

    success_exit_codes: Annotated[tuple[Count, ...], msgspec.Meta(max_length=256)] = (0,)
    """The job is Done when its payload ends with one of these, else Failed."""


def is_brokered(description: JobDescription) -> bool:
    """Return whether the broker places the job, in place of the first pilot that asks."""
    return (
        description.preferences is not None or bool(description.index_servers) or description.dispatch != ""
    )


_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(description: JobDescription) -> str:
    """Return the SHA-256 (hexadecimal) of what the description says: equal descriptions, equal digests."""
    return hashlib.sha256(_ENCODER.encode(description)).hexdigest()
