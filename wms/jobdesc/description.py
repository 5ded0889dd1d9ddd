"""The one job description: every language is read into it, and every service knows a job by it alone."""

import hashlib
from typing import TypeAlias

import msgspec

MIB = 1024 * 1024


Plain: TypeAlias = bool | int | float | str
Attribute: TypeAlias = Plain | tuple[Plain, ...]
"""What a job tells of itself to the expressions of sites."""


class SandboxRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An archive in the sandbox store, known by its content."""

    sha256: str
    """64 lower-case hexadecimal digits."""
    size: int
    """Bytes."""


class JobDescription(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One job, or an array of jobs that differ by their index alone.

    Who owns the job is not here: owner, group and VO come from the verified token. An empty tuple of names asks for
    nothing, so any value will do. The defaults are DIRAC's where DIRAC has one.
    """

    executable: str
    """A path relative to the job's directory, an absolute path, or a name looked up in PATH."""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    name: str = ""

    cpu_time: int = 86_400
    """Seconds of processor time, all processors together; DIRAC's default. Chooses the queue, and is enforced."""
    wall_time: int | None = None
    """Seconds by the clock on the wall; None leaves it to the resource's own limit."""
    memory_mb: int | None = None
    """MiB of resident memory of the whole process tree: asked for when matching (DIRAC's MinRAM), and the limit that is
    enforced when running unless `max_memory_mb` is another."""
    max_memory_mb: int | None = None
    """MiB that the job may use at most where the resource has them (DIRAC's MaxRAM): enforced when running, not matched by."""
    disk_mb: int | None = None
    """MiB in the job's directory: asked for when matching of resources that tell their disk, enforced when running."""
    processors: int = 1
    """How many it needs, and gets."""
    min_processors: int | None = None
    """In place of `processors`: how many it needs at least."""
    max_processors: int | None = None
    """With `min_processors`: how many it can use at most; None: as many as there are."""
    whole_node: bool = False
    """Whether it wants a node of its own: all that a pilot has, of pilots whose element says that they have whole nodes."""

    sites: tuple[str, ...] = ()
    banned_sites: tuple[str, ...] = ()
    grid_ces: tuple[str, ...] = ()
    stations: tuple[str, ...] = ()
    """SAM stations: it may run where the ad names one of them."""
    grid_middlewares: tuple[str, ...] = ()
    """How its pilots may be sent; those that are there already are not looked at by this."""
    platforms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """What the resource must have, all of them."""
    job_type: str = "User"
    pilot_types: tuple[str, ...] = ()
    submit_pools: tuple[str, ...] = ()
    setup: str = "default"
    requirements: str = ""
    """A ClassAd expression that must be true of the resource: `other.GlueCEPolicyMaxCPUTime > 60`."""
    rank: str = ""
    """A ClassAd expression: pilots go rather where its number is greater."""
    attributes: dict[str, Attribute] = {}
    """What the expressions of sites may look at, besides what this description says of itself; values alone."""

    priority: int = 1
    """0 to 10, among the jobs of one owner; 0 is almost never, 10 almost always first."""
    max_attempts: int = 3
    """How many times the job may be started before it fails for good."""

    input_sandbox: tuple[SandboxRef, ...] = ()
    """Unpacked into the job's directory, in this order."""
    output_sandbox: tuple[str, ...] = ()
    """Patterns (`*`, `?`, `[...]`, `**`) of files to keep, relative to the job's directory."""
    stdout_limit: int = 10 * MIB
    """Bytes of standard output that are kept; the rest is dropped and the drop is said."""
    stderr_limit: int = 10 * MIB

    job_group: str = ""
    """A name that jobs share which belong together; to select them by."""

    array: int | None = None
    """Make so many jobs of this description; `{n}` stands for 0, 1, 2, ... in each."""
    parameters: dict[str, tuple[str, ...]] = {}
    """Lists of one length, taken together: job n has the n-th value of each, where `{its name}` stands.

    A file may say `{start = 10, step = 5, factor = 2, count = 3}` in place of the list of 10, 25 and 55: each value is the one
    before times the factor, plus the step. Without a count there are as many as the array has jobs.
    """

    success_exit_codes: tuple[int, ...] = (0,)
    """The job is Done when its payload ends with one of these, else Failed."""


_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest(description: JobDescription) -> str:
    """Return the SHA-256 (hexadecimal) of what the description says: equal descriptions, equal digests."""
    return hashlib.sha256(_ENCODER.encode(description)).hexdigest()
