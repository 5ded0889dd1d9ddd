"""The description of a job: readers of all languages make this struct, and services use no other form."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

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
from wms.job.reasons import OF_PROGRAM, Code
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.staged_file import Inputs, Outputs

MIB = 1024 * 1024
INDEX_SERVERS_LIMIT = 20
GRACE_TIME_MOST = 3_600
ATTEMPTS_LIMIT = 100
"""The most times that a job may be started."""
CPU_TIME = 86_400
"""The seconds of CPU time of a job that states neither CPU time nor a long wall time."""

Plain: TypeAlias = bool | Whole | Measure | LongText
Attribute: TypeAlias = Plain | Annotated[tuple[Plain, ...], msgspec.Meta(max_length=100)]
"""The value of one of a job's `attributes`, which sites' expressions can read in the job's ad."""
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
    """The directory into which the archive is unpacked, relative to the job's directory; empty: the job's directory itself."""


class JobDescription(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The description of one job, or of an array of jobs that differ by index and parameters.

    It does not say who owns the job: owner, group and VO come from the verified token. An empty tuple of names makes no demand:
    any value will do. Where DIRAC has a default for a field, it is the default here.
    """

    executable: Line
    """The program: a path relative to the job's directory, an absolute path, or a name that is looked up in PATH."""
    arguments: Annotated[tuple[TextOfJob, ...], msgspec.Meta(max_length=10_000)] = ()
    environment: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=1_000)] = {}
    name: Name = ""
    priority: Count = 1
    """The priority among the jobs of one owner, 0 to 10. Jobs with a higher priority are more likely to start first."""

    cpu_time: CpuTime = CPU_TIME
    """Seconds of CPU time of all processors together. It selects the task queue, and the job is killed when it uses more.

    If it is the default, and `wall_time` times the processors is more, it is that product.
    """
    wall_time: CpuTime | None = None
    """Seconds of elapsed time that the job may run; None: only the limit of the resource applies."""
    grace_time: Annotated[int, msgspec.Meta(ge=0, le=GRACE_TIME_MOST)] | None = None
    """Seconds from SIGTERM to SIGKILL when the job is ended before it ends by itself; None: 30.

    So it ends at a limit, on `wms kill`, and when its pilot must end. What it writes meanwhile is kept. A site may give less.
    """
    memory_mb: Megabytes | None = None
    """MiB of resident memory that the job's processes need together (DIRAC's MinRAM).

    Only resources with so much memory are matched. A job that uses more is killed, unless `max_memory_mb` allows it more.
    """
    max_memory_mb: Megabytes | None = None
    """MiB of memory that the job may use (DIRAC's MaxRAM). It is enforced while the job runs, and has no effect on matching."""
    disk_mb: Megabytes | None = None
    """MiB that the job may use in its directory. It is enforced while the job runs. Resources that advertise less disk are not matched.

    A job that requests none may use an equal part of what is free on its node.
    """
    processors: Count = 1
    """The number of processors that the job needs and gets."""
    min_processors: Count | None = None
    """The least number of processors that the job needs, in place of `processors`."""
    max_processors: Count | None = None
    """The greatest number of processors that the job can use, with `min_processors`; None: as many as the pilot has."""
    gpus: Count = 0
    """The number of GPUs that the job needs and gets. Its `CUDA_VISIBLE_DEVICES` names them; without GPUs it is empty.

    It is matched as the requirement `other.GPUNumber >= gpus`.
    """
    whole_node: bool = False
    """Whether the job needs all processors of a node. Only pilots whose computing element offers whole nodes take it."""

    sites: Names = ()
    banned_sites: Names = ()
    grid_ces: Names = ()
    stations: Names = ()
    """SAM stations. The job may only run where the ad of the computing element names one of them."""
    grid_middlewares: Names = ()
    """The middlewares by which pilots may be sent for the job. Any pilot that runs already may take the job, whatever middleware sent it."""
    platforms: Names = ()
    container: Line = ""
    """The image of the container in which the payload runs; empty: the node's own system.

    A name in a registry (`docker://...`, `oras://...`) or on the node, or an absolute path. Only pilots that can run containers take the
    job.
    """
    network: Literal["node", "none"] = "node"
    """The network of the payload: that of its node, or none. Without, it can reach nothing but itself, the gateway neither.

    Only pilots that can take the network away run such a job.
    """
    tags: Names = ()
    """Tags, all of which the resource must have."""
    job_type: Name = "User"
    pilot_types: Names = ()
    submit_pools: Names = ()
    setup: Name = "default"
    requirements: LongText = ""
    """A ClassAd expression that must be true of the resource, such as `other.GlueCEPolicyMaxCPUTime > 60`."""
    rank: LongText = ""
    """A ClassAd expression whose value is a number. Of the resources that fit, the job prefers those with a greater number."""
    attributes: Annotated[dict[Name, Attribute], msgspec.Meta(max_length=100)] = {}
    """Attributes of the job's ad for the expressions of sites, in addition to those that the other fields of this description give."""

    max_attempts: Count = 3
    """How many times the job may be started before it fails for good, if pilots or sites lose it."""
    retries: Count = 0
    """How many times a job is started again, perhaps at another site, because its program failed by its exit code or a signal."""
    final_exit_codes: Annotated[tuple[Count, ...], msgspec.Meta(max_length=256)] = ()
    """The exit codes after which a job that failed is not started again, whatever its `retries`."""

    input_sandbox: Annotated[tuple[SandboxRef, ...], msgspec.Meta(max_length=100)] = ()
    """Archives that are unpacked into the job's directory, in this order."""
    input_parameters: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)] = ()
    """The names of parameters that give each job of an array an archive of its own.

    Each value is the `sha256:size` of an archive in the sandbox store, which is unpacked after `input_sandbox`.
    """
    output_sandbox: Annotated[tuple[Line, ...], msgspec.Meta(max_length=1_000)] = ()
    """Patterns (`*`, `?`, `[...]`, `**`) of files to keep, relative to the job's directory: at most 100 MiB and 100,000 files together.

    Of more, the smallest that fit are kept. The largest are named, and the job is Failed (`OUTPUT_FAILED`).
    """
    inputs: Inputs = ()
    """Files that are fetched by URL before the payload starts. The job is held if one of them cannot be fetched."""
    outputs: Outputs = ()
    """Files that are sent to URLs after the payload has succeeded. Each appears whole at its URL or not at all."""
    stdin: Line = ""
    """The file of the job's directory that becomes the standard input of the payload; empty for none."""
    stdout: Line = ""
    """A second file name for the standard output in the job's directory, for use in `outputs` and patterns. `stdout.txt` always has it."""
    stderr: Line = ""
    """A second file name for the standard error in the job's directory. `stderr.txt` always has it."""
    stdout_limit: Bytes = 10 * MIB
    """How many bytes of standard output are kept. The rest is dropped, and the job's report says so."""
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
    """Lists of values, all of one length, by name. In the job of index n, `{name}` is replaced by the list's n-th value, from 0.

    A document may give a series in place of a list: `{start = 10, step = 5, factor = 2, count = 3}` is 10, 25 and 55. Each
    value is the one before times the factor, plus the step. The default of `count` is the number of jobs of the array.
    """

    preferences: JobPreferences | None = None
    """When the job should start or end. If given, the broker places the job at the element that is best by them, and may reserve slots there."""
    index_servers: Annotated[tuple[Line, ...], msgspec.Meta(max_length=INDEX_SERVERS_LIMIT)] = ()
    """URLs of index servers that the broker asks for computing elements, in addition to those in its configuration."""
    dispatch: Literal["", "pilot", "direct"] = ""
    """How the job reaches its node: by `pilot`, `direct`, or, if empty, as the system chooses.

    Empty: any pilot takes the job, or a pilot bound to it if the broker places it. `pilot`: a pilot bound to the job.
    `direct`: the job itself is sent to the batch system, for sites whose nodes have no connection to the outside. No sandbox
    holds it, so elements take such jobs only of owners whom their configuration trusts.
    """
    coallocate: bool = False
    """Whether all jobs of the array, 2 to 20, start at the same time, each in a reservation at another element. If one cannot,
    none does."""

    success_exit_codes: Annotated[tuple[Count, ...], msgspec.Meta(max_length=256)] = (0,)
    """The exit codes of the payload with which the job is Done. With any other it is Failed."""

    @property
    def attempts_limit(self) -> int:
        """How many times the job may be started in all."""
        return min(self.max_attempts + self.retries, ATTEMPTS_LIMIT)

    def retries_after(self, code: Code, exit_code: int | None) -> int:
        """Return how many times the job may be started again, in all, after an attempt that ended for this reason with this exit code."""
        return self.retries if code in OF_PROGRAM and exit_code not in self.final_exit_codes else 0

    def __post_init__(self) -> None:
        """Give the job the CPU time that its wall time allows all its processors, if it states none."""
        if self.wall_time is not None and self.cpu_time == CPU_TIME:
            msgspec.structs.force_setattr(self, "cpu_time", _cpu_time(self))


def revised(description: JobDescription, changes: Mapping[str, Any]) -> JobDescription:
    """Return the description with new values of fields, by name. A CPU time that followed from the wall time follows again."""
    follows = description.cpu_time == _cpu_time(description)
    return msgspec.structs.replace(description, **{**({"cpu_time": CPU_TIME} if follows else {}), **changes})


def _cpu_time(description: JobDescription) -> int:
    wall = description.wall_time
    numbers = (description.processors, description.min_processors or 1, description.max_processors or 1)
    # A description that was made in Python may hold anything until it is checked.
    if not isinstance(wall, int) or not all(isinstance(each, int) for each in numbers):
        return CPU_TIME
    return max(CPU_TIME, wall * max(numbers))


def is_brokered(description: JobDescription) -> bool:
    """Return whether the resource broker places the job. If not, any fitting pilot that asks may get it."""
    return (
        description.preferences is not None or bool(description.index_servers) or description.dispatch != ""
    )


_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(description: JobDescription) -> str:
    """Return the SHA-256 of a description in hexadecimal. Equal descriptions have equal digests."""
    return hashlib.sha256(_ENCODER.encode(description)).hexdigest()
