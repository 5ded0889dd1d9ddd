"""Parses what PBS's tools print: `qstat -Q -f` and `pbsnodes -a`, of Torque and of PBS Pro (OpenPBS).

Both print records: a first line, then indented lines `name = value`. `qstat` wraps lines after eighty characters and continues
them after a tab. Torque prints a node's slots (`np`) and their jobs (`jobs = 0/17.server, 2-5/18.server`). PBS Pro prints the
available and assigned amounts of each resource.

A node of a queue (`queue = long`) takes only jobs of that queue. A queue with such nodes uses no others. Jobs of other queues
need the resources of their defaults. In Torque that is a property (`resources_default.neednodes`), in PBS Pro a resource with
text values (`default_chunk.Qlist`). A node that several queues use counts in full for each.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from wms.errors import Rejected, shown
from wms.glue.quantity import UNKNOWN, Quantity

RECORDS_LIMIT = 100_000
_ATTRIBUTE = re.compile(r"(?: {4,5})([A-Za-z_][\w.]{0,254}) = (.*)", re.ASCII)
_QUEUE = re.compile(r"Queue:[ \t](\S{1,255})", re.ASCII)
_TABS = re.compile(r"^\t", re.MULTILINE)
_YES = ("True", "yes")
_NODE = re.compile(r"([A-Za-z0-9][\w.\-\[\]]{0,254})", re.ASCII)
_COUNT = re.compile(r"(\w{1,40}):(\d{1,9})", re.ASCII)
_TAKEN = re.compile(r"(\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*)/", re.ASCII)
_WALLTIME = re.compile(r"(?:(\d{1,6}):)?(?:(\d{1,6}):)?(\d{1,9})(?:\.\d*)?", re.ASCII)
_MEMORY = re.compile(r"(\d{1,18})([kmgtp]?)(b|w)", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}

STARTING = frozenset({"free", "job-sharing", "resv-exclusive"})
"""States of nodes that start jobs now if they have room."""
UNUSABLE = frozenset(
    {
        "down", "offline", "unknown", "state-unknown", "stale", "provisioning", "wait-provisioning", "unresolvable",
        "maintenance", "sleep", "initializing", "uninitialized", "powering-on", "powering-off",
    }
)  # fmt: skip
"""States of nodes that run no jobs."""


class PbsQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One execution queue of a PBS server.

    `needs` are the (resource, value) pairs that its jobs ask of a node by default.
    """

    name: str
    enabled: bool
    """Whether the queue accepts jobs."""
    started: bool
    """Whether the queue starts jobs."""
    running: int = 0
    waiting: int = 0
    max_running: int = 0
    """The most jobs of the queue that may run at a time. 0: no limit."""
    max_seconds: Quantity = UNKNOWN
    needs: tuple[tuple[str, str], ...] = ()


class PbsNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a PBS server with its slots.

    `words` are its resources with text values, as (resource, value) pairs. A Torque property has the empty resource name.
    """

    name: str
    usable: bool
    slots: int
    free: int
    queue: str = ""
    memory_mb: int = 0
    words: frozenset[tuple[str, str]] = frozenset()


def queues(printed: str) -> list[PbsQueue]:
    """Return the execution queues in the output of `qstat -Q -f`. Raise Rejected if it cannot be parsed.

    Slurm's own `qstat` has a tab where PBS has blanks, and `yes` for `True`. It wraps no lines.
    """
    if printed.startswith("Queue:\t"):
        printed = _TABS.sub("    ", printed)
    return [
        _queue(name, said)
        for name, said in _records(printed, _QUEUE, "qstat -Q -f")
        if said.get("queue_type", "").lower().startswith("e")
    ]


def nodes(printed: str) -> list[PbsNode]:
    """Return the nodes in the output of `pbsnodes -a`. Raise Rejected if it cannot be parsed."""
    return [_node(name, said) for name, said in _records(printed, _NODE, "pbsnodes -a")]


def nodes_of(queue: PbsQueue, known: Sequence[PbsNode]) -> list[PbsNode]:
    """Return those of the nodes `known` on which jobs of this queue may run."""
    own = [each for each in known if each.queue == queue.name]
    if own:
        return own
    shared = [each for each in known if not each.queue]
    # A resource that no node has does not select nodes.
    told = {name for each in known for name, _ in each.words}
    needs = {need for need in queue.needs if need[0] in told}
    return [each for each in shared if needs <= each.words]


def duration(text: str) -> Quantity:
    """Return the seconds of a duration as PBS prints it, `[[hours:]minutes:]seconds`. UNKNOWN for any other text."""
    match = _WALLTIME.fullmatch(text)
    if not match:
        return UNKNOWN
    *larger, seconds = match.groups()
    numbers = [int(each) for each in larger if each is not None]
    total = 0
    for each in (*numbers, int(seconds)):
        total = total * 60 + each
    return total


def memory_mb(text: str) -> int:
    """Return the MiB of a memory size as PBS prints it, such as `1863028kb`. The unit `w` is a word of eight bytes. 0 for any other text."""
    match = _MEMORY.fullmatch(text)
    if not match:
        return 0
    number, unit, of = match.groups()
    return int(number) * _UNITS[unit.lower()] * (8 if of.lower() == "w" else 1) >> 20


def _queue(name: str, said: Mapping[str, str]) -> PbsQueue:
    counts = {state: int(count) for state, count in _COUNT.findall(said.get("state_count", ""))}
    return PbsQueue(
        name=name,
        enabled=said.get("enabled") in _YES,
        started=said.get("started") in _YES,
        running=sum(counts.get(state, 0) for state in ("Running", "Exiting", "Begun")),
        waiting=sum(counts.get(state, 0) for state in ("Queued", "Held", "Waiting", "Transit")),
        max_running=_number(said.get("max_running", "")),
        max_seconds=duration(said.get("resources_max.walltime", "")),
        needs=tuple(_needs(said)),
    )


def _needs(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for word in filter(None, said.get("resources_default.neednodes", "").split(":")):
        yield "", word
    for name, value in said.items():
        if name.startswith("default_chunk.") and not _is_amount(value):
            yield name.removeprefix("default_chunk."), value


def _node(name: str, said: Mapping[str, str]) -> PbsNode:
    states = {state.strip().lower() for state in said.get("state", "unknown").split(",")}
    usable = not states & UNUSABLE
    slots = _number(said.get("np", "")) or _number(said.get("resources_available.ncpus", ""))
    taken = (
        _taken(said.get("jobs", "")) if "np" in said else _number(said.get("resources_assigned.ncpus", ""))
    )
    return PbsNode(
        name=name,
        usable=usable,
        slots=slots,
        free=max(0, slots - taken) if usable and states <= STARTING else 0,
        queue=said.get("queue", ""),
        memory_mb=memory_mb(said.get("resources_available.mem", "")) or _physical(said.get("status", "")),
        words=frozenset(_words(name, said)),
    )


def _words(name: str, said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the text-valued resources of a node as (resource, value) pairs. In Torque these are its properties and its own name."""
    for word in (name, *said.get("properties", "").split(",")):
        yield "", word.strip()
    for resource, value in said.items():
        if resource.startswith("resources_available.") and not _is_amount(value):
            for word in value.split(","):
                yield resource.removeprefix("resources_available."), word.strip()


def _taken(jobs: str) -> int:
    """Return the number of slots in Torque's `jobs`: `0/17.server, 1/17.server`, or `0-3,6/17.server` since Torque 5."""
    taken: set[int] = set()
    for match in _TAKEN.finditer(jobs):
        for part in match[1].split(","):
            first, _, last = part.partition("-")
            taken.update(range(int(first), min(int(last or first), int(first) + RECORDS_LIMIT) + 1))
    return len(taken)


def _physical(status: str) -> int:
    said = dict(word.partition("=")[::2] for word in status.split(","))
    return memory_mb(said.get("physmem", ""))


def _is_amount(text: str) -> bool:
    """Return whether the value of a resource is an amount, such as a count, a size or a duration; others are words."""
    return bool(_WALLTIME.fullmatch(text) or _MEMORY.fullmatch(text))


def _number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) <= 9 else 0


def _records(printed: str, head: re.Pattern[str], tool: str) -> list[tuple[str, dict[str, str]]]:
    """Return the records in a tool's output as names and values. Raise Rejected, naming the tool, for any other text."""
    records: list[tuple[str, dict[str, str]]] = []
    last = ""
    for line in _lines(printed):
        if begun := head.fullmatch(line.rstrip()):
            records.append((begun[1], {}))
            last = ""
        elif records and (attribute := _ATTRIBUTE.fullmatch(line)):
            last = attribute[1]
            records[-1][1].setdefault(last, attribute[2].strip())
        elif records and last and line[:1].isspace():
            records[-1][1][last] += line.strip()
        else:
            raise Rejected("PBS_OUTPUT", f"{tool}: no line of PBS's: {shown(line, 80)}")
        if len(records) > RECORDS_LIMIT:
            raise Rejected("PBS_OUTPUT", f"{tool}: over {RECORDS_LIMIT:,} records")
    return records


def _lines(printed: str) -> Iterable[str]:
    return (line for line in printed.splitlines() if line.strip())
