"""`wms.site.<site>.inbox`: messages to the job agents of one site. Key: the pilot; each pilot ignores messages to others.

On the wire each message is the `order` in an envelope, `{"macs": [...], "order": {...}}`. The MACs, made with the pilot's own key,
prove that the services sent it (`wms.auth.orders`). An agent ignores and counts messages without a valid MAC.
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
    """Return the name of the topic of a site's inbox."""
    return f"{PREFIX}{slug(site)}.inbox"


class OfferedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job held for the pilot; the pilot has it only once its acceptance has been granted."""

    job_id: JobId
    epoch: Epoch
    owner: Name
    owner_group: Name
    vo: Name
    description: msgspec.Raw
    array_index: Count | None = None
    parameters: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=20)] = {}
    """The parameters of this job, if it belongs to a sweep; those of the sweep's other jobs are left out."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that is offered."""
        return AttemptId(self.job_id, self.epoch)


class Offer(msgspec.Struct, frozen=True, kw_only=True, tag="offer"):
    """Jobs offered for a request, held for `hold_seconds` from the sending of the request."""

    pilot_id: PilotId
    request_id: RequestId
    jobs: Annotated[tuple[OfferedJob, ...], Many]
    hold_seconds: Seconds


class NoMatch(msgspec.Struct, frozen=True, kw_only=True, tag="no-match"):
    """The answer that no job fits, with the reason and the seconds until the next request."""

    pilot_id: PilotId
    request_id: RequestId
    code: Word
    reason: Text
    retry_after_seconds: Seconds


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """The outcome of a report. A reported job that is in none of the lists had no effect, and needs none."""

    pilot_id: PilotId
    report_id: ReportId
    granted: AttemptIds = ()
    """Leases that the pilot holds for `lease_seconds`, counted from when it sent the report."""
    lost: AttemptIds = ()
    """Leases that the pilot does not hold: it must stop these jobs at once, and further reports on them are refused."""
    kill: AttemptIds = ()
    """Leases that the pilot still holds, but whose jobs it must kill now."""
    recorded: AttemptIds = ()
    """Attempts whose results are stored durably."""
    lease_seconds: Seconds = 0.0
    drain: bool = False


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """An order to kill jobs now; repeated in every Answer until their end is reported."""

    pilot_id: PilotId
    jobs: AttemptIds


class Peek(msgspec.Struct, frozen=True, kw_only=True, tag="peek"):
    """An order to report a job's output; the answer is a `Peeked` with the same query id, asker and ticket."""

    pilot_id: PilotId
    job_id: JobId
    epoch: Epoch
    stream: Literal["stdout", "stderr"]
    offset: Bytes | None
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    query_id: MessageId
    client: Client
    asker: Name
    """The owner of the inbox that the output goes to."""
    ticket: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """The ticket that the answer must repeat; it proves the query, its sender and its pilot."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt whose output is requested."""
        return AttemptId(self.job_id, self.epoch)


class TokenRenewal(msgspec.Struct, frozen=True, kw_only=True, tag="token-renewal"):
    """A new token for the pilot, sent before its present token expires."""

    pilot_id: PilotId
    sealed: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=32_768)], ...], msgspec.Meta(max_length=2)]
    """The token, which only the pilot's key opens: sealed with AES-GCM once for each key that the pilot may have."""


ToAgent = Offer | NoMatch | Answer | Kill | Peek | TokenRenewal
