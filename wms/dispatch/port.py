"""The port to a middleware: send, follow and end pilots, many at a time, under ids that the sender chooses.

A pilot has its id before it is sent. So after a crash between sending and storing, `follow` finds it again. Every dispatcher
passes the same suite, `tests/contract/dispatch`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from wms.dispatch.direct import DirectPayload
from wms.dispatch.policy import JobPolicy
from wms.errors import Unavailable
from wms.ids import PilotId
from wms.job.reasons import Code

OUTPUT_LIMIT = 16_384
"""The bytes at the end of a pilot's output that are fetched."""
LAST_LINE_LIMIT = 300
"""The most characters of a pilot's last line in the reason of its end."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a whole pilot asks of its element; 0 or "" asks for nothing.

    `constraint` and `gres` are names that the element defines; `attributes` are options of its middleware, by name.
    """

    cores: int = 1
    memory_mb: int = 0
    walltime_seconds: int = 0
    constraint: str = ""
    gres: str = ""
    attributes: Mapping[str, str] = {}


class PilotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to be sent: `config` is the TOML of its job agent, `token` its credential, which is secret."""

    pilot_id: PilotId
    site: str
    ce: str
    slots: int
    config: str
    token: str
    request: Request = Request()
    policy: JobPolicy = JobPolicy()
    """The requirements of its jobs, shown in the batch job."""
    payload: DirectPayload | None = None
    """The program of the job that is sent in place of a pilot, without configuration and token; None for a pilot."""


class PilotSighting(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pilot as a middleware knows it."""

    pilot_id: PilotId
    state: Literal["Submitted", "Waiting", "Running", "Done", "Failed", "Aborted"]
    reference: str | None = None
    """The id that the middleware gave the job."""
    reason: str = ""
    lost: Literal[Code.NODE_LOST, Code.PILOT_FORGOTTEN] | None = None
    """Why it counts as ended although its end was not seen; it may still run on a node that its element has lost."""

    @property
    def cause(self) -> Code | None:
        """The code of a pilot that did not end by itself; None for any other."""
        return (self.lost or Code.PILOT_DIED) if self.state in ("Failed", "Aborted") else None

    @property
    def ended(self) -> bool:
        """Whether the pilot has ended."""
        return self.state in ("Done", "Failed", "Aborted")


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a pilot's output, standard output and error together."""

    pilot_id: PilotId
    text: str


class Dispatcher(Protocol):
    """A dispatcher for one middleware. All calls raise Unavailable if it cannot be reached."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Send pilots. A pilot that could not be sent comes back as Failed with the reason.

        A pilot that may or may not have arrived is left out; `follow` tells later.
        """

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of pilots. A pilot that the middleware does not know comes back as Aborted and `lost`.

        A pilot whose state is uncertain now is left out.
        """

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """End pilots; do nothing for those that have ended."""

    async def alive(self) -> list[PilotId]:
        """Return all pilots that the middleware lists as alive under this account, whoever sent them."""

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[Output]:
        """Return the ends of the pilots' outputs, at most OUTPUT_LIMIT bytes each, without empty ones."""

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove the files and records of pilots that have ended, but for those worth keeping."""


def settled(outcomes: Sequence[PilotSighting | BaseException]) -> list[PilotSighting]:
    """Return the sightings of many attempts. Raises the first error if all attempts failed, or if it is not Unavailable."""
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
    """Return the last line that is not blank; for a program that failed it mostly says why.

    Of a line of a structured log only the event is returned. A long line is cut after a whole word.
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
    """The fields of a line of a structured log that are for people."""

    event: str
    reason: str = ""
