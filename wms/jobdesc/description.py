"""The description of a job: readers of all languages make one, and every service knows a job by it alone."""

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
"""The value of an attribute that a job's ad shows to the expressions of sites."""
Values: TypeAlias = Annotated[tuple[TextOfJob, ...], msgspec.Meta(max_length=1_000_000)]
"""The values of one parameter: one for each job of an array."""
JobIds: TypeAlias = Annotated[tuple[JobNumber | TextOfJob, ...], msgspec.Meta(max_length=1_000)]
"""Jobs: ids, and texts with lists of ids and ranges, such as `"7,100-200"`."""


class SandboxRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reference to an archive in the sandbox store, by its digest."""

    sha256: Digest
    """The SHA-256 of the archive: 64 lower-case hexadecimal digits."""
    size: Bytes
    """The size of the archive in bytes."""
    directory: Name = ""
    """The directory, relative to the job's directory, into which the archive is unpacked; empty: the job's directory itself."""


class JobDescription(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The description of one job, or of an array of jobs that differ by index and parameters.

    It does not say who owns the job: owner, group and VO come from the verified token. An empty tuple of names asks for
    nothing: any value will do. The defaults are DIRAC's where DIRAC has one.
    """

    executable: Line
    """A path relative to the job's directory, an absolute path, or a name looked up in PATH."""
    arguments: Annotated[tuple[TextOfJob, ...], msgspec.Meta(max_length=10_000)] = ()
    environment: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=1_000)] = {}
    name: Name = ""
    priority: Count = 1
    """The priority among the jobs of one owner, 0 to 10. Jobs with 0 hardly ever go first, jobs with 10 almost always."""

    cpu_time: CpuTime = 86_400
    """Seconds of processor time, all processors together. It chooses the task queue, and is enforced. The default is DIRAC's."""
    wall_time: CpuTime | None = None
    """Seconds of elapsed time that the job may run; None leaves the limit to the resource."""
    memory_mb: Megabytes | None = None
    """MiB of resident memory of the whole process tree (DIRAC's MinRAM).

    A resource must have so much to be matched. It is the limit that is enforced, unless `max_memory_mb` is another.
    """
    max_memory_mb: Megabytes | None = None
    """MiB that the job may use at most (DIRAC's MaxRAM). It is enforced when the job runs, and is not matched."""
    disk_mb: Megabytes | None = None
    """MiB in the job's directory. A resource that tells its disk must have so much, and it is enforced when the job runs."""
    processors: Count = 1
    """The number of processors that the job needs and gets."""
    min_processors: Count | None = None
    """The least number of processors that the job needs, in place of `processors`."""
    max_processors: Count | None = None
    """The greatest number of processors that the job can use, with `min_processors`; None: as many as there are."""
    whole_node: bool = False
    """Whether the job needs all processors of a node. Only pilots whose computing element offers whole nodes take it."""

    sites: Names = ()
    banned_sites: Names = ()
    grid_ces: Names = ()
    stations: Names = ()
    """SAM stations: the job may run where the ad of the computing element names one of them."""
    grid_middlewares: Names = ()
    """The middlewares by which pilots for the job may be sent. Pilots that run already take it whatever sent them."""
    platforms: Names = ()
    tags: Names = ()
    """Tags that the resource must have, all of them."""
    job_type: Name = "User"
    pilot_types: Names = ()
    submit_pools: Names = ()
    setup: Name = "default"
    requirements: LongText = ""
    """A ClassAd expression that must be true of the resource, such as `other.GlueCEPolicyMaxCPUTime > 60`."""
    rank: LongText = ""
    """A ClassAd expression whose value is a number. The job goes rather to resources where this number is greater."""
    attributes: Annotated[dict[Name, Attribute], msgspec.Meta(max_length=100)] = {}
    """Values that the expressions of sites may use, besides those that the other fields of this description give."""

    max_attempts: Count = 3
    """How many times the job may be started before it fails for good."""

    input_sandbox: Annotated[tuple[SandboxRef, ...], msgspec.Meta(max_length=100)] = ()
    """Archives that are unpacked into the job's directory, in this order."""
    input_parameters: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)] = ()
    """The names of parameters that give each job of an array an archive of its own.

    Each value is the `sha256:size` of an archive in the sandbox store, which is unpacked after `input_sandbox`.
    """
    output_sandbox: Annotated[tuple[Line, ...], msgspec.Meta(max_length=1_000)] = ()
    """Patterns (`*`, `?`, `[...]`, `**`) of files to keep, relative to the job's directory."""
    inputs: Inputs = ()
    """Files that are fetched by URL before the payload starts. The job is held if one of them cannot be fetched."""
    outputs: Outputs = ()
    """Files that are sent to URLs after the payload has succeeded. Each appears whole at its URL or not at all."""
    stdin: Line = ""
    """A file of the job's directory that is the standard input of the payload; empty for none."""
    stdout: Line = ""
    """A further name of the standard output in the job's directory, for `outputs` and patterns. `stdout.txt` has it as well."""
    stderr: Line = ""
    """A further name of the standard error in the job's directory. `stderr.txt` has it as well."""
    stdout_limit: Bytes = 10 * MIB
    """Bytes of standard output that are kept. The rest is dropped, and the job's report says so."""
    stderr_limit: Bytes = 10 * MIB

    job_group: Name = ""
    """A name that jobs may share, by which they can be selected."""

    after: JobIds = ()
    """Jobs that must be Done before this job starts: ids, and texts such as `"7,100-200"`. Until then it is Held
    (`DEPENDENCY`)."""
    after_any: JobIds = ()
    """Jobs that must have ended, with any result, before this job starts."""
    input_from: JobIds = ()
    """Jobs whose outputs this job gets, each in a directory named by the other job's id: `17/out.root`.

    This job starts once they are Done, as with `after`.
    """

    array: Count | None = None
    """The number of jobs that this description makes, which differ by `{n}`: 0, 1, 2, ...; None for no array."""
    parameters: Annotated[dict[Name, Values], msgspec.Meta(max_length=20)] = {}
    """Lists of values, all of one length, by name: the job of index n has the n-th value of each where `{name}` stands.

    A document may give a series in place of a list: `{start = 10, step = 5, factor = 2, count = 3}` is 10, 25 and 55. Each
    value is the one before times the factor, plus the step. The default of `count` is the number of jobs of the array.
    """

    preferences: JobPreferences | None = None
    """If given, the broker places the job: it chooses the element that completes it first, and may reserve slots there."""
    index_servers: Annotated[tuple[Line, ...], msgspec.Meta(max_length=INDEX_SERVERS_LIMIT)] = ()
    """URLs of index servers that the broker asks for computing elements, besides those that it knows."""
    dispatch: Literal["", "pilot", "direct"] = ""
    """How the job reaches its node: by `pilot`, `direct`, or, if empty, as the system chooses.

    Empty: any pilot takes the job, or a pilot bound to it if the broker places it. `pilot`: a pilot bound to the job.
    `direct`: the job itself is sent to the batch system, for sites whose nodes have no connection to the outside.
    """
    coallocate: bool = False
    """Whether all jobs of the array, 2 to 20, start at the same time, each in a reservation at another element. If one cannot,
    none does."""

    success_exit_codes: Annotated[tuple[Count, ...], msgspec.Meta(max_length=256)] = (0,)
    """The exit codes of the payload with which the job is Done. With any other it is Failed."""


def is_brokered(description: JobDescription) -> bool:
    """Return whether the resource broker places the job, so that not the first pilot that asks gets it."""
    return (
        description.preferences is not None or bool(description.index_servers) or description.dispatch != ""
    )


_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(description: JobDescription) -> str:
    """Return the SHA-256 of a description in hexadecimal. Equal descriptions have equal digests."""
    return hashlib.sha256(_ENCODER.encode(description)).hexdigest()
