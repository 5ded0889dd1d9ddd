"""The topics `wms.site.<site>.inbox`: messages to the job agents of one site. Key: the pilot; a pilot ignores those to others.

Each message is sent as the `order` in an envelope, `{"macs": [...], "order": {...}}`. The MACs, made with the pilot's own key,
prove that a service sent it (`wms.auth.orders`). An agent ignores and counts messages without a valid MAC.
"""

from functools import lru_cache
from typing import Annotated, Literal

import msgspec

from wms.bounds import Bytes, Client, Count, MessageId, Name, Seconds, Text, TextOfJob, Word
from wms.ids import AttemptId, Epoch, JobId, PilotId, ReportId, RequestId, slug

PREFIX = "wms.site."

Many = msgspec.Meta(max_length=65_536)
AttemptIds = Annotated[tuple[AttemptId, ...], Many]


@lru_cache(maxsize=4_096)
def inbox(site: str) -> str:
    """Return the name of the Kafka topic with the messages to the job agents of a site."""
    return f"{PREFIX}{slug(site)}.inbox"


class OfferedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is reserved for the pilot. The pilot may start it only once its acceptance has been granted."""

    job_id: JobId
    epoch: Epoch
    owner: Name
    owner_group: Name
    vo: Name
    description: msgspec.Raw
    array_index: Count | None = None
    parameters: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=20)] = {}
    """This job's own values of its array's parameter lists. Empty if it belongs to no job array."""
    likely_seconds: Seconds | None = None
    """How long jobs of its queue take a slot, at most in most cases. None: unknown, so that it counts as a long job."""

    @property
    def attempt_id(self) -> AttemptId:
        """The offered attempt, as job id and epoch (the number of times the job was given away)."""
        return AttemptId(self.job_id, self.epoch)


class Offer(msgspec.Struct, frozen=True, kw_only=True, tag="offer"):
    """The answer to a match request with jobs. They stay reserved for `hold_seconds` seconds after the request was sent."""

    pilot_id: PilotId
    request_id: RequestId
    jobs: Annotated[tuple[OfferedJob, ...], Many]
    hold_seconds: Seconds


class NoMatch(msgspec.Struct, frozen=True, kw_only=True, tag="no-match"):
    """The answer to a match request for which there is no job, with the reason and the seconds until the next request."""

    pilot_id: PilotId
    request_id: RequestId
    code: Word
    reason: Text
    retry_after_seconds: Seconds


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """The answer to a pilot's report. A reported job that is in none of the lists needs no action."""

    pilot_id: PilotId
    report_id: ReportId
    granted: AttemptIds = ()
    """Attempts whose lease the pilot holds for `lease_seconds`, counted from when it sent the report that is answered."""
    lost: AttemptIds = ()
    """Attempts whose lease the pilot does not hold. It must stop these jobs at once; further reports on them are refused."""
    kill: AttemptIds = ()
    """Attempts whose lease the pilot holds, but whose jobs it must kill now."""
    recorded: AttemptIds = ()
    """Attempts whose reported results are stored."""
    lease_seconds: Seconds = 0.0
    drain: bool = False


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """An order to a pilot to kill these jobs now. Every Answer repeats it until their end is reported."""

    pilot_id: PilotId
    jobs: AttemptIds


class Peek(msgspec.Struct, frozen=True, kw_only=True, tag="peek"):
    """An order to a pilot to send a part of what a job printed. The pilot answers with a Peeked of the same query id and ticket."""

    pilot_id: PilotId
    job_id: JobId
    epoch: Epoch
    stream: Literal["stdout", "stderr"]
    offset: Bytes | None
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    query_id: MessageId
    client: Client
    asker: Name
    """The user whose inbox topic gets the output."""
    raw: bool = False
    """Whether the user wants the text as it was printed."""
    ticket: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """A proof that a service sent this Peek for this query, user and pilot. The answer must repeat it."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt whose output is wanted, as job id and epoch (the number of times the job was given away)."""
        return AttemptId(self.job_id, self.epoch)


class TokenRenewal(msgspec.Struct, frozen=True, kw_only=True, tag="token-renewal"):
    """A new token for the pilot, sent before its present one expires."""

    pilot_id: PilotId
    sealed: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=32_768)], ...], msgspec.Meta(max_length=2)]
    """The token, encrypted with AES-GCM so that only the pilot can read it: one copy for each key that the pilot may have."""


ToAgent = Offer | NoMatch | Answer | Kill | Peek | TokenRenewal
