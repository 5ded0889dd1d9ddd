"""The link of a job agent: the protocol by which it sends match requests and reports to the services, and receives their orders.

A link may lose messages without an error. So a sender that needs an answer sends its message again under the same id. Kafka
and the gateway each have an implementation; both pass the tests in `tests/services/job_agent/test_link.py`.
"""

from typing import Protocol

from wms.ids import AttemptId
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Peeked, Report
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
        """Return the token with which an attempt's payload can read its own job. It expires after `lifetime` seconds, at most 90 days.

        It is made here from the pilot's key, without a message to a service.
        """

    @property
    def is_open(self) -> bool:
        """Whether the connection is open. A break that was not noticed yet does not show."""

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the pilot's new token from now on. `renewal` has it encrypted for this pilot.

        It is ignored if it cannot be decrypted, or does not expire later than the present one.
        """

    async def open(self) -> None:
        """Connect, after closing an old connection. All messages that services send to the pilot from then on arrive.

        Raise Unavailable if neither Kafka nor a gateway answers.
        """

    async def close(self) -> None:
        """Close the connection, if it is open."""

    async def ask(self, request: MatchRequest) -> None:
        """Send a match request. Return once Kafka or the gateway has accepted it; the services answer later with an order.

        Raise Unavailable if it is not accepted within seconds or the connection is closed.
        """

    async def report(self, report: Report | Peeked) -> None:
        """Send a report, or a part of a payload's output. Return once Kafka or the gateway has accepted it.

        Raise Unavailable if it is not accepted within seconds or the connection is closed. Raise Rejected if it is too large
        for a message.
        """

    async def receive(self, timeout_seconds: float) -> list[ToAgent]:
        """Wait for orders to the pilot and return those that have come; empty if none comes within `timeout_seconds`.

        Orders without a valid signature are left out. Raise Unavailable if the connection is closed or broken.
        """

    async def check(self) -> None:
        """Raise Unavailable if the connection is broken, so that orders may be missed. Return if it works."""
