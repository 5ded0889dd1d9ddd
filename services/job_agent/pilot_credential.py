"""The credential of a job agent: its present token, and its key, with which it verifies and decodes orders of the services."""

import structlog

from wms.auth.orders import PilotCredential, PilotKey, claimed_end
from wms.auth.payload_token import payload_token
from wms.bus.topics import site_inbox_of
from wms.errors import Rejected
from wms.ids import AttemptId, PilotId
from wms.messages.site_inbox import ToAgent, TokenRenewal
from wms.messages.wire import PAYLOAD_LIMIT, Codec
from wms.runtime import clock

log = structlog.get_logger()


class OrderCodec(Codec[ToAgent | None]):
    """A decoder of the orders that services sent to one pilot, signed with its key. `site` is the pilot's site.

    Messages without a valid signature are counted.
    """

    def __init__(self, site: str, key: PilotKey) -> None:
        super().__init__(ToAgent)
        self._topic = site_inbox_of(site).name
        self._key = key
        self.refused = 0
        """How many messages had no valid signature of the services for this pilot."""

    def decode(self, payload: bytes) -> ToAgent | None:
        """Return the order in a message, or None if its signature is not valid. Raise Rejected if it is signed but cannot be decoded."""
        try:
            order = self._key.verified(self._topic, payload, PAYLOAD_LIMIT)
        except Rejected as fault:
            self._count(fault)
            return None
        return super().decode(bytes(order))

    def _count(self, fault: Rejected) -> None:
        self.refused += 1
        # Each time that there are twice as many: whoever sends many is not to fill the log.
        if self.refused.bit_count() == 1:
            log.warning("order refused", refused=self.refused, error=fault.message)


class HeldCredential:
    """The credential that a pilot uses now. Services replace its token before it expires; its key stays the same."""

    def __init__(self, pilot_id: PilotId, site: str, credential: PilotCredential) -> None:
        """Take the credential with which the pilot was sent to this site. Raise Rejected if the key in it is not valid."""
        self.token = credential.token
        self._key = PilotKey(pilot_id, credential.key)
        self.codec = OrderCodec(site, self._key)

    def payload_token(self, attempt_id: AttemptId, lifetime: float) -> str:
        """Return the token with which an attempt's payload can read its own job. It expires after `lifetime` seconds, at most 90 days."""
        return payload_token(self._key, attempt_id, lifetime, clock.timestamp())

    def renew(self, renewal: TokenRenewal) -> None:
        """Use the pilot's new token from now on. `renewal` has it encrypted for this pilot.

        It is ignored if it cannot be decrypted, or does not expire later than the present one.
        """
        try:
            token = self._key.opened(renewal.sealed)
        except Rejected as fault:
            log.warning("new token not taken", error=fault.message)
            return
        if claimed_end(token) > claimed_end(self.token):
            self.token = token
            log.info("new token taken")
