"""The port to a middleware or batch system: sends, follows and ends pilots, many at a time, under ids that the sender chooses.

A pilot has its id before it is sent. So after a crash between sending and storing, `follow` finds it again. Every dispatcher passes the
same tests, `tests/contract/dispatch`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec.structs import force_setattr

from wms.dispatch.direct import DirectPayload
from wms.dispatch.job_policy import JobPolicy
from wms.errors import Unavailable
from wms.ids import PilotId
from wms.job.reasons import Code
from wms.printed_text import one_line

OUTPUT_LIMIT = 16_384
"""How many bytes of a pilot's output are fetched, from its end."""
LAST_LINE_LIMIT = 300
"""How many characters of a pilot's last line of output go into the reason for its end."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a pilot requests of its computing element, for itself as a whole. 0 or "" requests nothing.

    `constraint` and `gres` are names that the site defines, as in Slurm; `attributes` are further submit options of the middleware, by name.
    """

    cores: int = 1
    memory_mb: int = 0
    walltime_seconds: int = 0
    constraint: str = ""
    gres: str = ""
    attributes: Mapping[str, str] = {}


class PilotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to be sent. `config` is the TOML configuration of its job agent. `token` is its credential and must be kept secret."""

    pilot_id: PilotId
    site: str
    ce: str
    slots: int
    config: str
    token: str
    request: Request = Request()
    policy: JobPolicy = JobPolicy()
    """What the pilot's jobs require, as its batch job shows it to administrators."""
    payload: DirectPayload | None = None
    """The program of the job that is sent in place of a pilot; None for a pilot.

    With a payload, `config` and `token` are not used.
    """


class PilotSighting(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a pilot's batch job as its middleware reports it."""

    pilot_id: PilotId
    state: Literal["Submitted", "Waiting", "Running", "Done", "Failed", "Aborted"]
    reference: str | None = None
    """The id that the middleware gave the batch job; None if it is not known."""
    reason: str = ""
    lost: Literal[Code.NODE_LOST, Code.PILOT_FORGOTTEN] | None = None
    """Why the pilot counts as ended although nobody saw it end, so it may still run somewhere. None: its end was seen, or it has not ended."""
    staging: Literal["", "failed", "corrupt"] = ""
    """What went wrong with the files that the middleware moves by URL for a direct job; empty: nothing, as far as is known.

    failed: the middleware could not fetch or send a file. corrupt: an input had a wrong size or checksum, and the job did not begin.
    """

    def __post_init__(self) -> None:
        """Clean the reason, which may be any text that the middleware printed."""
        force_setattr(self, "reason", one_line(self.reason))

    @property
    def cause(self) -> Code | None:
        """The code for why the pilot ended, if the middleware ended it or lost it; None for any other pilot."""
        return (self.lost or Code.PILOT_DIED) if self.state in ("Failed", "Aborted") else None

    @property
    def ended(self) -> bool:
        """Whether the pilot has ended, in whatever way."""
        return self.state in ("Done", "Failed", "Aborted")


class PilotOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one pilot's output, standard output and error together."""

    pilot_id: PilotId
    text: str


class Dispatcher(Protocol):
    """Sends pilots to one computing element and follows them there. All calls raise Unavailable if the element cannot be reached."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Send pilots; return the state of each. A pilot that could not be sent has the state Failed and the reason.

        A pilot is left out if it is unknown whether it arrived. `follow` finds out later.
        """

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots. A pilot that the middleware does not know has the state Aborted, with `lost` set.

        A pilot whose state cannot be determined now is left out.
        """

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """End these pilots. Pilots that have ended already are ignored."""

    async def alive(self) -> list[PilotId]:
        """Return all pilots that the middleware lists as alive under this account, whoever sent them."""

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Return the end of each pilot's output, at most OUTPUT_LIMIT bytes. Pilots without output are absent."""

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove files and records of these pilots, which have ended. The latest logs may be kept."""


def settled(outcomes: Sequence[PilotSighting | BaseException]) -> list[PilotSighting]:
    """Return the pilot states among `outcomes`, the results and errors of several submissions. Unavailable errors are left out.

    Raise the first error if all attempts failed, or if an error is not Unavailable.
    """
    failed = [each for each in outcomes if isinstance(each, BaseException)]
    for error in failed:
        if len(failed) == len(outcomes) or not isinstance(error, Unavailable):
            raise error
    return [each for each in outcomes if isinstance(each, PilotSighting)]


T = TypeVar("T")


def batches(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in parts of at most `size`, in order."""
    for first in range(0, len(many), size):
        yield many[first : first + size]


def last_line(text: str) -> str:
    """Return the last line of an output that is not blank; empty if there is none. After a failure it mostly says what went wrong.

    Of a structured (JSON) log line, only the event and the reason are returned. A long line is cut after a whole word.
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
    """The fields of a structured (JSON) log line from which `last_line` makes its text."""

    event: str
    reason: str = ""
