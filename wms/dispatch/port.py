"""The port to a middleware: send pilots, follow them, end them; many at a time, under names that we chose.

A pilot is known by its id from before it is sent, so that after a crash between sending and writing down what was sent,
`follow` finds it again. Every dispatcher passes one suite, `tests/contract/dispatch`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from wms.dispatch.policy import JobPolicy
from wms.errors import Unavailable
from wms.ids import PilotId
from wms.job.reasons import Code

OUTPUT_LIMIT = 16_384
"""Bytes of what a pilot printed that are worth fetching: its end."""
LAST_LINE_LIMIT = 300
"""Characters of a pilot's last line that go into the reason of its end."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a pilot asks of its element, for the whole of it; 0 or "" asks for nothing.

    `constraint` and `gres` are words of the element's own; `attributes` are options of its middleware's, by name.
    """

    cores: int = 1
    memory_mb: int = 0
    walltime_seconds: int = 0
    constraint: str = ""
    gres: str = ""
    attributes: Mapping[str, str] = {}


class PilotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to be sent: `config` is its job agent's TOML, `token` its credential, never to be shown."""

    pilot_id: PilotId
    site: str
    ce: str
    slots: int
    config: str
    token: str
    request: Request = Request()
    policy: JobPolicy = JobPolicy()
    """What its jobs require, to be seen in the batch job."""


class PilotSighting(msgspec.Struct, frozen=True, kw_only=True):
    """What a middleware knows of a pilot."""

    pilot_id: PilotId
    state: Literal["Submitted", "Waiting", "Running", "Done", "Failed", "Aborted"]
    reference: str | None = None
    """The middleware's own name for it."""
    reason: str = ""
    lost: Literal[Code.NODE_LOST, Code.PILOT_FORGOTTEN] | None = None
    """Why nobody saw it end, though it counts as ended: it may work on where its element cannot see it."""

    @property
    def cause(self) -> Code | None:
        """What became of one that did not end by itself; None of any other."""
        return (self.lost or Code.PILOT_DIED) if self.state in ("Failed", "Aborted") else None

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.state in ("Done", "Failed", "Aborted")


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a pilot printed, its standard output and error together."""

    pilot_id: PilotId
    text: str


class Dispatcher(Protocol):
    """One middleware. Raises Unavailable when it cannot be reached at all."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Send pilots; one that could not be sent comes back as Failed with its reason.

        One of which nobody can say whether it arrived is left out: `follow` will find it, or not.
        """

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return what is known of pilots; one that was never sent, or is forgotten, comes back as Aborted, and `lost`.

        One of which nothing certain can be said just now is left out.
        """

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """End pilots; those that have ended already stay so."""

    async def alive(self) -> list[PilotId]:
        """Return all pilots that the middleware lists as alive under our account, whoever sent them and whenever."""

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[Output]:
        """Return the end of what pilots printed, at most OUTPUT_LIMIT bytes each; those that left nothing are left out."""

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Take away what is left of pilots that have ended, in so far as it is not worth keeping."""


def settled(outcomes: Sequence[PilotSighting | BaseException]) -> list[PilotSighting]:
    """Return what is known of many attempts. Raises what the first raised if nothing is known of any, or not Unavailable."""
    failed = [each for each in outcomes if isinstance(each, BaseException)]
    for error in failed:
        if len(failed) == len(outcomes) or not isinstance(error, Unavailable):
            raise error
    return [each for each in outcomes if isinstance(each, PilotSighting)]


T = TypeVar("T")


def batches(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield parts of at most `size`, in order."""
    for first in range(0, len(many), size):
        yield many[first : first + size]


def last_line(text: str) -> str:
    """Return the last line that says something: with a program that failed, mostly why.

    A line of a structured log gives its event, and a long line ends after a whole word.
    """
    lines = (line.strip() for line in reversed(text.split("\n")))
    return next((_shortened(_event_of(line)) for line in lines if line), "")


def _event_of(line: str) -> str:
    try:
        logged = msgspec.json.decode(line, type=_Logged)
    except msgspec.DecodeError:
        return line
    return f"{logged.event}: {logged.reason}" if logged.reason else logged.event


def _shortened(line: str) -> str:
    if len(line) <= LAST_LINE_LIMIT:
        return line
    return line[:LAST_LINE_LIMIT].rpartition(" ")[0] + " ..."


class _Logged(msgspec.Struct):
    """What of a line of a structured log is for people."""

    event: str
    reason: str = ""
