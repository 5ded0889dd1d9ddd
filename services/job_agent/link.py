"""The link of a job agent: the port by which it sends match requests and reports to the services, and receives their orders.

A link may lose messages unnoticed. A sender that needs an answer sends its message again under the same id. Both links pass one suite,
`tests/services/job_agent/test_link.py`.
"""

from typing import Protocol

from wms.ids import AttemptId
from wms.messages.reports import Peeked, Report
from wms.messages.requests import MatchRequest
from wms.messages.site_inbox import ToAgent, TokenRenewal


class AgentLink(Protocol):
    """The connection of one job agent to the services, over Kafka or through a gateway."""

    @property
    def refused(self) -> int:
        """How many received messages were ignored, because no service had signed them for this pilot."""

    @property
    def token(self) -> str:
        """The pilot's present token."""

    def payload_token(self, attempt_id: AttemptId, lifetime: float) -> str:
        """Return the token of an attempt's payload, valid for at most `lifetime` seconds. It is made here, without a message."""

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known."""

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the pilot's new token from now on. It is ignored if it cannot be decrypted or expires no later than the present one."""

    async def open(self) -> None:
        """Connect, after closing an old connection. From then on all messages to the pilot arrive.

        Raise Unavailable if nobody answers.
        """

    async def close(self) -> None:
        """Close the connection, if it is open."""

    async def ask(self, request: MatchRequest) -> None:
        """Send a match request. Raise Unavailable if it is not taken in time or the connection is closed."""

    async def report(self, report: Report | Peeked) -> None:
        """Send a report, or a part of a payload's output.

        Raise Unavailable if it is not taken in time or the connection is closed, Rejected if it is too large.
        """

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Wait at most `timeout_seconds` for messages to the pilot and return them. Those without a valid signature are left out.

        Raise Unavailable if the connection is closed or broken.
        """

    async def check(self) -> None:
        """Raise Unavailable if the connection is broken, so that messages may be missing."""
