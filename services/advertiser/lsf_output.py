"""Parses what LSF 10.1's tools print: `bqueues -o ... -json` and `bhosts -o ... -json`.

All values are texts; a dash means no limit. LSF counts slots and not jobs: a job of four slots counts four times.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from wms.decoding import UNDECODABLE
from wms.errors import Rejected, shown
from wms.glue.quantity import UNKNOWN, UNLIMITED, Quantity

QUEUE_FIELDS = "queue_name status max pend run susp rsv runlimit hosts"
HOST_FIELDS = "host_name status max njobs"
RECORDS_LIMIT = 100_000
NAMES_LIMIT = 1_000

UNUSABLE = ("unavail", "unreach", "unlicensed", "closed_adm", "closed_lim", "closed_lock", "closed_wind")
"""Prefixes, in lower case, of the states of hosts that run no jobs. Hosts in any other state run jobs, or could."""
OPEN = "ok"

_MINUTES = re.compile(r"\s*(\d{1,9})(?:\.(\d)\d*)?\b.*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][\w.\-]{0,254}", re.ASCII)
T = TypeVar("T")


class LsfQueue(msgspec.Struct, frozen=True, rename="upper"):
    """One queue as `bqueues` prints it. Counts are of slots."""

    queue_name: str
    status: str
    max: str = "-"
    pend: str = "0"
    run: str = "0"
    susp: str = "0"
    rsv: str = "0"
    hosts: str = "all"
    runlimit: str = "-"
    max_runlimit: str = "-"
    """The same as `runlimit`; the versions of LSF name the column differently."""

    @property
    def is_open(self) -> bool:
        """Whether the queue accepts jobs."""
        return self.status.lower().startswith("open")

    @property
    def is_active(self) -> bool:
        """Whether the queue starts jobs."""
        return self.status.lower().partition(":")[2].startswith("active")

    @property
    def taken(self) -> int:
        """The number of slots that started jobs or reservations of the queue occupy."""
        return number(self.run) + number(self.susp) + number(self.rsv)

    @property
    def max_seconds(self) -> Quantity:
        """The longest wall time of a job of the queue, in seconds. UNLIMITED or UNKNOWN if there is no number."""
        return minutes(self.runlimit if self.runlimit != "-" else self.max_runlimit)


class LsfHost(msgspec.Struct, frozen=True, rename="upper"):
    """One host as `bhosts` prints it."""

    host_name: str
    status: str
    max: str = "-"
    njobs: str = "0"

    @property
    def usable(self) -> bool:
        """Whether the host runs jobs, or could if it had room."""
        return not self.status.lower().startswith(UNUSABLE)

    @property
    def slots(self) -> int:
        """The number of job slots of the host. 0 if it has no limit."""
        return number(self.max)

    @property
    def free(self) -> int:
        """The number of slots in which the host could start jobs now. 0 if it starts none."""
        return max(0, self.slots - number(self.njobs)) if self.status.lower() == OPEN else 0


class _Queues(msgspec.Struct, frozen=True, rename="upper"):
    records: list[LsfQueue]


class _Hosts(msgspec.Struct, frozen=True, rename="upper"):
    records: list[LsfHost]


def queues(printed: bytes) -> list[LsfQueue]:
    """Return the queues in the output of `bqueues -o ... -json`. Raise Rejected if it cannot be parsed."""
    return _bounded(_decoded(printed, _Queues, "bqueues -json").records, "bqueues -json")


def hosts(printed: bytes) -> list[LsfHost]:
    """Return the hosts in the output of `bhosts -o ... -json`. Raise Rejected if it cannot be parsed."""
    return _bounded(_decoded(printed, _Hosts, "bhosts -json").records, "bhosts -json")


def names_of(hosts_: str) -> tuple[str, ...] | None:
    """Return the hosts and host groups in the `hosts` column of a queue, sorted. None if the queue uses all hosts.

    Raise Rejected for a name that is unsafe on a command line, and for too many names.
    """
    words = [word.partition("+")[0].rstrip("/") for word in hosts_.split()]
    if not words or any(
        word in ("all", "allremote", "others", "-") or word.startswith(("all~", "~")) for word in words
    ):
        return None
    if wrong := [word for word in words if not _NAME.fullmatch(word)]:
        raise Rejected("LSF_OUTPUT", f"bqueues: no name of a host: {shown(wrong[0], 80)}")
    if len(words) > NAMES_LIMIT:
        raise Rejected("LSF_OUTPUT", f"bqueues: a queue names over {NAMES_LIMIT:,} hosts")
    return tuple(sorted(set(words)))


def number(text: str) -> int:
    """Return the whole number in the text. 0 for a dash or any other text."""
    word = text.strip()
    return int(word) if word.isdecimal() and len(word) <= 9 else 0


def minutes(text: str) -> Quantity:
    """Return the seconds of a time limit that LSF prints in minutes, such as `540.0` or `60.0 of hostA`.

    A dash is UNLIMITED, any other text UNKNOWN.
    """
    if text.strip() == "-":
        return UNLIMITED
    match = _MINUTES.fullmatch(text)
    return int(match[1]) * 60 + int(match[2] or 0) * 6 if match else UNKNOWN


def _bounded(records: list[T], tool: str) -> list[T]:
    if len(records) > RECORDS_LIMIT:
        raise Rejected("LSF_OUTPUT", f"{tool}: over {RECORDS_LIMIT:,} records")
    return records


def _decoded(printed: bytes, kind: type[T], tool: str) -> T:
    try:
        return msgspec.json.decode(printed, type=kind)
    except UNDECODABLE as error:
        raise Rejected("LSF_OUTPUT", f"{tool}: {shown(str(error), 300)}") from None


def without_twins(known: Sequence[LsfHost]) -> list[LsfHost]:
    """Return each host once. `bhosts` lists a host once for each of its groups."""
    return list({each.host_name: each for each in known}.values())
