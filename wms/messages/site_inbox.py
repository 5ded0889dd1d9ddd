"""`wms.site.<site>.inbox`: what job agents of one site are told. Key: the pilot, which passes over the others'.

On the wire each is the `order` in an envelope, `{"macs": [...], "order": {...}}`, which says by the pilot's own key that the
services made it (`wms.auth.orders`). An agent passes over and counts whatever is not so signed.
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
    """Return the topic of the site's inbox."""
    return f"{PREFIX}{slug(site)}.inbox"


class OfferedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job held for the pilot: its own only once its acceptance has been granted."""

    job_id: JobId
    epoch: Epoch
    owner: Name
    owner_group: Name
    vo: Name
    description: msgspec.Raw
    array_index: Count | None = None
    parameters: Annotated[dict[Name, TextOfJob], msgspec.Meta(max_length=20)] = {}
    """Of a sweep's job, its own: those of the others stay behind."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt that is offered."""
        return AttemptId(self.job_id, self.epoch)


class Offer(msgspec.Struct, frozen=True, kw_only=True, tag="offer"):
    """Jobs for the request, held for `hold_seconds` from when the request was sent."""

    pilot_id: PilotId
    request_id: RequestId
    jobs: Annotated[tuple[OfferedJob, ...], Many]
    hold_seconds: Seconds


class NoMatch(msgspec.Struct, frozen=True, kw_only=True, tag="no-match"):
    """Nothing fits, why, and when to ask again."""

    pilot_id: PilotId
    request_id: RequestId
    code: Word
    reason: Text
    retry_after_seconds: Seconds


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What became of a report. A job in no list was reported to no effect, and needs none."""

    pilot_id: PilotId
    report_id: ReportId
    granted: AttemptIds = ()
    """Leases that are the pilot's for `lease_seconds`, counted from when it sent the report."""
    lost: AttemptIds = ()
    """Leases that are not the pilot's: stop at once, nothing more is accepted for them."""
    kill: AttemptIds = ()
    """Leases that are still the pilot's, but whose jobs are to be killed now."""
    recorded: AttemptIds = ()
    """Results that are durable."""
    lease_seconds: Seconds = 0.0
    drain: bool = False


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """Kill these jobs now; repeated in every Answer until their end is reported."""

    pilot_id: PilotId
    jobs: AttemptIds


class Peek(msgspec.Struct, frozen=True, kw_only=True, tag="peek"):
    """Report what the job has printed; the answer goes back as `Peeked` with this `reply_to`."""

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
    """Goes back with the answer: it proves that this was asked, by whom and of which pilot."""

    @property
    def attempt_id(self) -> AttemptId:
        """The attempt whose output is asked for."""
        return AttemptId(self.job_id, self.epoch)


class TokenRenewal(msgspec.Struct, frozen=True, kw_only=True, tag="token-renewal"):
    """A new token for the pilot, before the one that it has ends."""

    pilot_id: PilotId
    sealed: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=32_768)], ...], msgspec.Meta(max_length=2)]
    """The token, which only the pilot's key opens: sealed with AES-GCM once for each key that the pilot may have."""


ToAgent = Offer | NoMatch | Answer | Kill | Peek | TokenRenewal
