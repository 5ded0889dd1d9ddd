"""Parses what Slurm's tools print: `sinfo --json`, `squeue --json`, `scontrol --oneliner show partition`.

JSON came with Slurm 21.08 and changed. Up to 22.05 `sinfo` lists nodes, since 23.02 groups of like nodes in a partition. A state was a word and is a
list of words. A number may be an object that says whether it is set or infinite. Both forms are read. Limits of partitions are read from `scontrol`,
whose lines are the same in all versions.

A node in several partitions counts in each with all its processors. So the free processors of partitions must not be added up. A job that waits in
several partitions counts in each. Tasks of an array that have not started are one record.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from wms.decoding import UNDECODABLE
from wms.errors import Rejected, Unavailable, shown
from wms.glue.quantity import UNKNOWN, UNLIMITED, Quantity


class Number(msgspec.Struct, frozen=True):
    """A number in the JSON of Slurm 23.02 and later. It may be unset or infinite."""

    set: bool = True
    infinite: bool = False
    number: float = 0


Counted: TypeAlias = int | float | Number | None
Words: TypeAlias = str | list[str]
P = TypeVar("P", bound="_Printed")


class _Node(msgspec.Struct, frozen=True):
    """A node in the output of `sinfo --json` up to Slurm 22.05."""

    name: str = ""
    state: Words = ""
    state_flags: list[str] = []
    cpus: Counted = 0
    alloc_cpus: Counted = 0
    idle_cpus: Counted = 0
    real_memory: Counted = 0
    features: Words = ""
    architecture: str = ""
    partitions: list[str] = []


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _State(msgspec.Struct, frozen=True):
    state: Words = ""


class _Total(msgspec.Struct, frozen=True):
    total: Counted = 0


class _Cpus(msgspec.Struct, frozen=True):
    allocated: Counted = 0
    idle: Counted = 0
    total: Counted = 0
    minimum: Counted = 0


class _Least(msgspec.Struct, frozen=True):
    minimum: Counted = 0


class _Features(msgspec.Struct, frozen=True):
    total: Words = ""


class _Group(msgspec.Struct, frozen=True):
    """A group of like nodes in a partition, in the output of `sinfo --json` since Slurm 23.02."""

    partition: _Named = _Named()
    node: _State = _State()
    nodes: _Total = _Total()
    cpus: _Cpus = _Cpus()
    memory: _Least = _Least()
    features: _Features = _Features()


class _Error(msgspec.Struct, frozen=True):
    error: str | None = None
    description: str | None = None


class _Printed(msgspec.Struct, frozen=True):
    """What each tool prints. If no controller answers, `squeue` and `sinfo` say so here, and exit with 0."""

    errors: list[_Error] | None = None


class _Sinfo(_Printed, frozen=True):
    nodes: list[_Node] | None = None
    sinfo: list[_Group] | None = None


class _Job(msgspec.Struct, frozen=True):
    partition: str = ""
    job_state: Words = ""
    user_name: str = ""
    array_task_id: Counted = None
    array_task_string: str = ""


class _Squeue(_Printed, frozen=True, kw_only=True):
    jobs: list[_Job]


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """Like nodes of one partition. `cpus` and `idle_cpus` count all of the nodes; fields that end in `_each` are of one node."""

    partition: str
    nodes: int
    usable: bool
    cpus: int
    idle_cpus: int
    cpus_each: int
    memory_mb_each: int
    features: frozenset[str]
    architecture: str = ""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """The state and time limit of one Slurm partition. `max_seconds` is the longest wall time of a job."""

    name: str
    state: str
    max_seconds: Quantity


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one Slurm partition run and wait. Fields that end in `_of_users` count the configured users' jobs only."""

    running: int = 0
    waiting: int = 0
    running_of_users: int = 0
    waiting_of_users: int = 0


UNUSABLE = frozenset(
    {
        "DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FUTURE", "INVALID", "INVALID_REG", "MAINT",
        "NOT_RESPONDING", "NO_RESPOND", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "REBOOT", "REBOOT_ISSUED",
        "REBOOT_REQUESTED", "UNKNOWN",
    }
)  # fmt: skip
"""States and flags of nodes that start no jobs now."""
ENDED = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
        "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT",
    }
)  # fmt: skip
WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})")
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def machines(printed: bytes) -> list[Machines]:
    """Return the nodes in the output of `sinfo --json`, by partition. Nodes that are alike may be grouped.

    Raise Rejected if the output cannot be parsed, Unavailable if the tool names an error.
    """
    said = _decoded(printed, _Sinfo, "sinfo --json")
    if said.sinfo is not None:
        return [_of_group(each) for each in said.sinfo]
    if said.nodes is not None:
        return [each for node in said.nodes for each in _of_node(node)]
    raise Rejected("SLURM_OUTPUT", "sinfo --json told of no nodes: Slurm 22.05 or later is needed")


def _of_node(node: _Node) -> Iterator[Machines]:
    for partition in node.partitions:
        yield Machines(
            partition=partition,
            nodes=1,
            usable=_usable([*_words(node.state), *node.state_flags]),
            cpus=_whole(node.cpus),
            idle_cpus=_whole(node.idle_cpus),
            cpus_each=_whole(node.cpus),
            memory_mb_each=_whole(node.real_memory),
            features=frozenset(_words(node.features)),
            architecture=node.architecture,
        )


def _of_group(group: _Group) -> Machines:
    return Machines(
        partition=group.partition.name,
        nodes=_whole(group.nodes.total),
        usable=_usable(_words(group.node.state)),
        cpus=_whole(group.cpus.total),
        idle_cpus=_whole(group.cpus.idle),
        cpus_each=_whole(group.cpus.minimum),
        memory_mb_each=_whole(group.memory.minimum),
        features=frozenset(_words(group.features.total)),
    )


def _usable(states: Iterable[str]) -> bool:
    # «idle*» means a node that does not answer.
    return not any(state.upper() in UNUSABLE or state.endswith("*") for state in states)


def partitions(printed: bytes) -> list[Partition]:
    """Return the partitions in the output of `scontrol --oneliner show partition`. Other lines are ignored."""
    found = []
    for line in printed.decode("utf-8", "replace").splitlines():
        said = dict(word.partition("=")[::2] for word in line.split())
        if "PartitionName" in said:
            found.append(
                Partition(
                    name=said["PartitionName"],
                    state=said.get("State", ""),
                    max_seconds=duration(said.get("MaxTime", "")),
                )
            )
    return found


def duration(text: str) -> Quantity:
    """Return the seconds of a duration as Slurm prints it, `[days-]hours:minutes:seconds` or `minutes:seconds`.

    `UNLIMITED` and `INFINITE` are UNLIMITED, any other text UNKNOWN.
    """
    if text.casefold() in ("unlimited", "infinite"):
        return UNLIMITED
    match = _DURATION.fullmatch(text)
    if not match:
        return UNKNOWN
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def loads(printed: bytes, users: Sequence[str] = ()) -> dict[str, Load]:
    """Return the number of jobs in each partition, by its name, from the output of `squeue --json`.

    Jobs of `users` are also counted separately; if `users` is empty, jobs of all users are. Raise Rejected if the output cannot be
    parsed, Unavailable if the tool names an error.
    """
    counted: Counter[tuple[str, str, bool]] = Counter()
    for job in _decoded(printed, _Squeue, "squeue --json").jobs:
        states = {state.upper() for state in _words(job.job_state)}
        if states & ENDED:
            continue
        waits = bool(states & WAITING)
        ours = not users or job.user_name in users
        for partition in job.partition.split(","):
            counted[partition, "waiting" if waits else "running", ours] += tasks(job) if waits else 1
    names = {partition for partition, _, _ in counted}
    return {
        name: Load(
            running=counted[name, "running", True] + counted[name, "running", False],
            waiting=counted[name, "waiting", True] + counted[name, "waiting", False],
            running_of_users=counted[name, "running", True],
            waiting_of_users=counted[name, "waiting", True],
        )
        for name in names
    }


def tasks(job: _Job) -> int:
    """Return how many jobs one record of `squeue` stands for.

    For a waiting array, such as `1,5-9:2%4`, it is the number of its tasks; else 1.
    """
    if not job.array_task_string or _whole(job.array_task_id):
        return 1
    count = 0
    for part in job.array_task_string.partition("%")[0].split(","):
        if match := _TASKS.fullmatch(part.strip()):
            first, last, step = match.groups()
            count += (int(last) - int(first)) // max(1, int(step or 1)) + 1 if last else 1
    return max(1, count)


def _words(said: Words) -> list[str]:
    return said if isinstance(said, list) else [word.strip() for word in said.split(",") if word.strip()]


def _whole(said: Counted) -> int:
    match said:
        case Number():
            return int(said.number) if said.set and not said.infinite else 0
        case None:
            return 0
        case _:
            return int(said)


def _decoded(printed: bytes, kind: type[P], tool: str) -> P:
    try:
        said = msgspec.json.decode(printed, type=kind)
    except UNDECODABLE as error:
        raise Rejected("SLURM_OUTPUT", f"{tool}: {shown(str(error), 300)}") from None
    if said.errors:
        first = said.errors[0]
        raise Unavailable(
            f"{tool}: {shown(first.description or first.error or 'an error without a text', 300)}"
        )
    return said
