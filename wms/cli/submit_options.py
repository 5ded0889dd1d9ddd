"""The options of `wms submit`, each declared once: its name and type, its help, and the field of a description that it sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from wms.cli.fields import makes, options_of, sets
from wms.cli.options import Bytes, Duration, Flag, Many, Memory

RUN = Group("What to run", sort_key=1)
NEEDS = Group("What it needs", sort_key=2)
WHERE = Group("Where it may run", sort_key=3)
FILES = Group("Files", sort_key=4)
HOW = Group("How to submit", sort_key=5)


@Parameter(name="*", group=RUN)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to run."""

    name: str | None = sets("name")
    """A name to find the jobs by; {n} stands for the index in an array."""

    array: int | None = sets("array")
    """Make this many jobs, up to a million; {n} in arguments, environment, name and outputs stands for 0, 1, 2, ..."""

    parameter: Annotated[Many | None, Parameter(name=("--parameter", "--param"))] = makes("parameters")
    """NAME=V1,V2,... or NAME=@FILE with a value on each line: one job for each value, which replaces {NAME}. Several lists have the same length."""

    table: str | None = None
    """A CSV file (or .tsv), whose first line names the parameters: one job for each further line."""

    series: Many | None = None
    """NAME=start=10,step=5,factor=1,count=3: one job for each value, which is the one before times the factor, plus the step; without a count as many as --array says."""

    env: Annotated[Many | None, Parameter(name=("--env", "-e"))] = makes("environment")
    """NAME=VALUE in the job's environment. May be repeated."""

    group: str | None = sets("job_group")
    """The job group: a name for jobs that belong together, to select them by with --group."""

    retry_of: Many | None = None
    """Ids of jobs, as 7,100-200: a new job like each of them, with the options given here over its own. May be repeated."""


@Parameter(name="*", group=NEEDS)
@dataclass(frozen=True, kw_only=True)
class NeedOptions:
    """What a job needs of the node that runs it."""

    cpu_time: Duration | None = sets("cpu_time")
    """Processor time: 600, 10m, 1h30m. Default: 1 day. Enforced."""

    wall_time: Duration | None = sets("wall_time")
    """Wall-clock time: 600, 10m, 1h30m. Enforced."""

    memory: Memory | None = sets("memory_mb")
    """Memory: 512M, 2G. Enforced."""

    disk: Memory | None = sets("disk_mb")
    """Disk space in the job's directory: 500M, 10G. Enforced."""

    max_memory: Memory | None = sets("max_memory_mb")
    """Memory that it may use at most where there is so much, in place of the limit by --memory."""

    processors: int | None = sets("processors")
    """Processors on one node."""

    min_processors: int | None = sets("min_processors")
    """In place of --processors: how many it needs at least."""

    max_processors: int | None = sets("max_processors")
    """With --min-processors: how many it can use at most."""

    whole_node: Flag = sets("whole_node", unless=False)
    """A node of its own."""

    tag: Many | None = sets("tags")
    """What the resource must have. May be repeated."""

    platform: Many | None = sets("platforms")
    """One of these platforms. May be repeated."""


@Parameter(name="*", group=WHERE)
@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """Where a job may run."""

    site: Many | None = sets("sites")
    """Only at these sites. May be repeated."""

    banned_site: Many | None = sets("banned_sites")
    """Not at these sites. May be repeated."""

    ce: Many | None = sets("grid_ces")
    """Only at these computing elements. May be repeated."""

    station: Many | None = sets("stations")
    """Where the site advertises one of these SAM stations. May be repeated."""

    grid_middleware: Many | None = sets("grid_middlewares")
    """Only where pilots are sent by one of these middlewares. May be repeated."""

    pilot_type: Many | None = sets("pilot_types")
    """Only for pilots of one of these types, such as private. May be repeated."""

    submit_pool: Many | None = sets("submit_pools")
    """Only for pilots of one of these submit pools. May be repeated."""

    setup: str | None = sets("setup")
    """The setup that its pilots belong to; default: default."""

    job_type: str | None = sets("job_type")
    """The type of the jobs, which sites may refuse."""

    requirements: str | None = sets("requirements")
    """A ClassAd expression that must be true of the resource, whose attributes are other.NAME: Site, Tags, MaxRAM, what its site advertises."""

    rank: str | None = sets("rank")
    """A ClassAd expression: pilots go rather where its number is greater."""

    attribute: Many | None = makes("attributes")
    """NAME=VALUE that the expressions of sites may look at; true, false and numbers are such, all else is a text. May be repeated."""


@Parameter(name="*", group=FILES)
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Files that go with a job, and what it leaves."""

    input: Annotated[Many | None, Parameter(name=("--input", "-i"))] = makes("input_sandbox")
    """A file or directory to send along; a relative one keeps its path. In a sweep '{NAME}' names another one for each job. May be repeated."""

    output: Annotated[Many | None, Parameter(name=("--output", "-o"))] = sets("output_sandbox")
    """Pattern of files to keep: '*.root', 'out/**'. May be repeated."""

    stdout_limit: Bytes | None = sets("stdout_limit")
    """How much of the standard output is kept: 64K, 10M."""

    stderr_limit: Bytes | None = sets("stderr_limit")
    """How much of the standard error is kept."""

    input_from: Many | None = sets("input_from")
    """Ids of jobs that must be Done first, and whose outputs these get, each in a directory named by its id: 17/out.root. May be repeated."""


@Parameter(name="*", group=HOW)
@dataclass(frozen=True, kw_only=True)
class HowOptions:
    """How to submit."""

    after: Many | None = sets("after")
    """Ids of jobs, as 7,100-200: these start once all of those are Done. Until then they are Held (DEPENDENCY). May be repeated."""

    after_any: Many | None = sets("after_any")
    """Likewise, once all of those have ended, whichever way. May be repeated."""

    priority: int | None = sets("priority")
    """0 to 10 among your own jobs; default: 1."""

    max_attempts: int | None = sets("max_attempts")
    """How often a job may be started before it fails for good."""

    success_exit_code: Annotated[list[int] | None, Parameter(negative=())] = sets("success_exit_codes")
    """The job is Done when its program ends with this code; default: 0. May be repeated."""

    id: str | None = None
    """Yours for this submission: again with the same id, nothing is submitted twice."""

    dry_run: Flag = False
    """Check everything and show what would be sent; send nothing."""

    strict: Flag = False
    """Submit nothing if a job could run nowhere now. Without it, a warning says so."""

    hold: Flag = False
    """Submit the jobs Held: none starts before `wms release`."""

    wait: Flag = False
    """Wait until the jobs have ended; exit code 1 unless all are Done."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubmitOptions:
    """All options of `wms submit`, by the groups of its help."""

    run: RunOptions = RunOptions()
    needs: NeedOptions = NeedOptions()
    where: WhereOptions = WhereOptions()
    files: FileOptions = FileOptions()
    how: HowOptions = HowOptions()

    def groups(self) -> tuple[RunOptions, NeedOptions, WhereOptions, FileOptions, HowOptions]:
        """Return the options of each group."""
        return (self.run, self.needs, self.where, self.files, self.how)


OPTIONS: Mapping[str, str] = options_of(RunOptions, NeedOptions, WhereOptions, FileOptions, HowOptions)
"""The option that sets or makes a field, by field."""


def flag_of(name: str) -> str:
    """Return the option of a field, as a user writes it."""
    return f"--{OPTIONS.get(name, name).replace('_', '-')}"
