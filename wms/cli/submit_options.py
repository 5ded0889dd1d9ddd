"""The options of `wms submit`. Each is declared once: name, type, help, and the field of a description that it sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from wms.cli.fields import makes, options_of, sets
from wms.cli.options import Bytes, Duration, Flag, Many, Memory
from wms.errors import shown

RUN = Group("What to run", sort_key=1)
NEEDS = Group("What it needs", sort_key=2)
WHERE = Group("Where it may run", sort_key=3)
FILES = Group("Files", sort_key=4)
HOW = Group("How to submit", sort_key=5)


def _array_jobs(_: Any, tokens: Sequence[Any]) -> int:
    """Return the number of jobs that `--array` says. Raise ValueError for a range of indices, as Slurm takes, with how to count so here."""
    said = tokens[0].value
    try:
        return int(said)
    except ValueError:
        raise ValueError(
            f"{shown(said, 60)} is no number of jobs. 10 makes the jobs 0 to 9; --series i=start=1,count=10 counts from 1"
        ) from None


@Parameter(name="*", group=RUN)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that define the program and the jobs that run it."""

    name: str | None = sets("name")
    """A name to find the jobs by; {n} stands for the index in an array."""

    array: Annotated[int | None, Parameter(converter=_array_jobs)] = sets("array")
    """The number of jobs to make, up to a million. {n} in arguments, environment, name and outputs stands for 0, 1, 2, ..."""

    parameter: Annotated[Many | None, Parameter(name=("--parameter", "--param"))] = makes("parameters")
    """NAME=V1,V2,... or NAME=@FILE with a value on each line: one job for each value, which replaces {NAME}. Several lists must have the same length."""

    table: str | None = None
    """A CSV file (or .tsv). Its first line names the parameters; each further line makes a job."""

    series: Many | None = None
    """NAME=start=10,step=5,factor=1,count=3: one job for each value. A value is the one before times the factor, plus the step. Without a count, --array gives their number."""

    env: Annotated[Many | None, Parameter(name=("--env", "-e"))] = makes("environment")
    """NAME=VALUE in the job's environment. May be repeated."""

    group: str | None = sets("job_group")
    """The job group: a name for jobs that belong together, to select them by with --group."""

    retry_of: Many | None = None
    """Ids of jobs, such as 7,100-200: submit a new job like each of these, with the options given here in place of the old job's. May be repeated."""


@Parameter(name="*", group=NEEDS)
@dataclass(frozen=True, kw_only=True)
class NeedOptions:
    """The options for what a job requires of the node that runs it."""

    cpu_time: Duration | None = sets("cpu_time")
    """CPU time: 600 (seconds), 10m, 1h30m. Default: 1 day. A job that uses more is killed."""

    wall_time: Duration | None = sets("wall_time")
    """Wall-clock time: 600 (seconds), 10m, 1h30m. A job that runs longer is killed."""

    grace_time: Duration | None = sets("grace_time")
    """Time from SIGTERM to SIGKILL when the job is ended early: 45 (seconds), 2m. Default: 30 seconds. What it writes meanwhile is kept."""

    memory: Memory | None = sets("memory_mb")
    """Memory: 512M, 2G. A job that uses more is killed."""

    disk: Memory | None = sets("disk_mb")
    """Disk space in the job's directory: 500M, 10G. A job that uses more is killed."""

    max_memory: Memory | None = sets("max_memory_mb")
    """The most memory that the job may use, such as 4G, if the node has so much. It replaces --memory as the limit."""

    processors: int | None = sets("processors")
    """Processors on one node."""

    min_processors: int | None = sets("min_processors")
    """The fewest processors that the job needs, in place of --processors."""

    max_processors: int | None = sets("max_processors")
    """The most processors that the job can use, with --min-processors."""

    gpus: int | None = sets("gpus")
    """GPUs on one node. The job has them alone, and CUDA_VISIBLE_DEVICES names them."""

    whole_node: Flag = sets("whole_node", unless=False)
    """A whole node, which the job shares with no other job."""

    container: str | None = sets("container")
    """The image of the container in which the job runs: a name, such as docker://host/name:tag, or an absolute path."""

    network: Annotated[str | None, Parameter(help="The network of the payload: node or none.")] = sets(
        "network"
    )

    tag: Many | None = sets("tags")
    """A tag that the resource must have. May be repeated."""

    platform: Many | None = sets("platforms")
    """One of these platforms. May be repeated."""


@Parameter(name="*", group=WHERE)
@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """The options for where a job may run: on which sites, computing elements and pilots."""

    site: Many | None = sets("sites")
    """Only at these sites. May be repeated."""

    banned_site: Many | None = sets("banned_sites")
    """Not at these sites. May be repeated."""

    ce: Many | None = sets("grid_ces")
    """Only at these computing elements. May be repeated."""

    station: Many | None = sets("stations")
    """Only at sites that advertise one of these SAM stations. May be repeated."""

    grid_middleware: Many | None = sets("grid_middlewares")
    """Send pilots for the job only to computing elements that are reached by one of these middlewares. A pilot that runs may take it anywhere. May be repeated."""

    pilot_type: Many | None = sets("pilot_types")
    """Only on pilots of one of these types, such as private. May be repeated."""

    submit_pool: Many | None = sets("submit_pools")
    """Send pilots for the job only to computing elements of one of these submit pools, or that state none. A pilot that runs may take it anywhere. May be repeated."""

    setup: str | None = sets("setup")
    """The setup to which the pilots of the job belong; default: default."""

    job_type: str | None = sets("job_type")
    """The job type; sites may refuse types."""

    requirements: str | None = sets("requirements")
    """A ClassAd expression that must be true of the resource. other.NAME is an attribute of the resource: Site, Tags, MaxRAM, or what its site advertises."""

    rank: str | None = sets("rank")
    """A ClassAd expression with a number as its value. Resources with a greater number are preferred."""

    preferences: str | None = makes("preferences")
    """A file with the preferences of all jobs, as JobPreferences in XML: the broker places the jobs by them, in place of those in their files."""

    attribute: Many | None = makes("attributes")
    """An attribute NAME=VALUE of the job for the expressions of sites. true, false and numbers have these types; any other value is a text. May be repeated."""


@Parameter(name="*", group=FILES)
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The options for a job's input files and its output."""

    input: Annotated[Many | None, Parameter(name=("--input", "-i"))] = makes("input_sandbox")
    """A file or directory to send along, at most 10,000 files and 100 MiB packed; a relative one keeps its path. In a sweep, '{NAME}' names a different one for each job. May be repeated."""

    output: Annotated[Many | None, Parameter(name=("--output", "-o"))] = sets("output_sandbox")
    """A pattern of files to keep: '*.root', 'out/**'. At most 100 MiB and 100,000 files together; the largest of more are named and lost. May be repeated."""

    stdout_limit: Bytes | None = sets("stdout_limit")
    """The size of standard output that is kept: 64K, 10M."""

    stderr_limit: Bytes | None = sets("stderr_limit")
    """The size of standard error that is kept: 64K, 10M."""

    input_from: Many | None = sets("input_from")
    """Ids of jobs that must be Done first. The new jobs get the outputs of job 17 in the directory 17/, and so on. May be repeated."""


@Parameter(name="*", group=HOW)
@dataclass(frozen=True, kw_only=True)
class HowOptions:
    """The options for the submission itself."""

    after: Many | None = sets("after")
    """Ids of jobs, such as 7,100-200, that must all be Done before the new jobs start. Until then the new jobs are Held (DEPENDENCY). May be repeated."""

    after_any: Many | None = sets("after_any")
    """Ids of jobs that must all have ended, in any state, before the new jobs start. May be repeated."""

    priority: int | None = sets("priority")
    """The priority among your own jobs: 0 to 10; default: 1."""

    max_attempts: int | None = sets("max_attempts")
    """How many attempts a job has before it fails for good, if pilots or sites lose it."""

    retries: int | None = sets("retries")
    """How many times a job is started again because its program failed; default: 0."""

    final_exit_code: Annotated[list[int] | None, Parameter(negative=())] = sets("final_exit_codes")
    """An exit code after which a failed job is not started again, whatever --retries says. May be repeated."""

    success_exit_code: Annotated[list[int] | None, Parameter(negative=())] = sets("success_exit_codes")
    """The job is Done when its program ends with this code; default: 0. May be repeated."""

    id: str | None = None
    """An id of your choice for this submission. With the same id, a repeated command submits nothing twice."""

    dry_run: Flag = False
    """Check everything and show what would be sent; send nothing."""

    strict: Flag = False
    """Submit nothing if a job could run nowhere now. Without it, a warning says so."""

    lenient: Flag = False
    """Leave out what wms cannot carry out of a description in another language, though it may change the job. Without it, such a description is refused."""

    hold: Flag = False
    """Submit the jobs Held: none starts before `wms release`."""

    wait: Flag = False
    """Wait until the jobs have ended; exit code 1 unless all are Done."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubmitOptions:
    """All options of `wms submit`, one group for each heading of its help."""

    run: RunOptions = RunOptions()
    needs: NeedOptions = NeedOptions()
    where: WhereOptions = WhereOptions()
    files: FileOptions = FileOptions()
    how: HowOptions = HowOptions()

    def groups(self) -> tuple[RunOptions, NeedOptions, WhereOptions, FileOptions, HowOptions]:
        """Return the option groups, in the order of the help."""
        return (self.run, self.needs, self.where, self.files, self.how)


OPTIONS: Mapping[str, str] = options_of(RunOptions, NeedOptions, WhereOptions, FileOptions, HowOptions)
"""For each field of a description that an option sets or computes, the name of this option."""


def flag_of(name: str) -> str:
    """Return the option that sets a field of a description, as users write it: `--cpu-time`."""
    return f"--{OPTIONS.get(name, name).replace('_', '-')}"
