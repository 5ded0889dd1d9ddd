"""What an agent has of its credential: a newer token is taken from who can seal it, and orders by their signature."""

import base64

import msgspec
import pytest

from services.job_agent.pilot_credential import HeldCredential
from wms.auth.orders import OrderKeys, PilotCredential
from wms.errors import Rejected
from wms.ids import PilotId, RequestId
from wms.messages.site_inbox import NoMatch, TokenRenewal, inbox
from wms.messages.wire import encode

KEYS, STRANGER = OrderKeys([b"k" * 32]), OrderKeys([b"?" * 32])
PILOT = PilotId("p-1")
ORDER = NoMatch(pilot_id=PILOT, request_id=RequestId("r"), code="", reason="", retry_after_seconds=1)


def token(end: int) -> str:
    return f"h.{base64.urlsafe_b64encode(msgspec.json.encode({'exp': end})).decode().rstrip('=')}.s"


@pytest.fixture
def held() -> HeldCredential:
    return HeldCredential(PILOT, "A", PilotCredential(token(20), KEYS.of_pilot(PILOT)))


def test_a_newer_token_is_taken_and_an_older_or_a_strangers_is_not(held: HeldCredential) -> None:
    held.renew(TokenRenewal(pilot_id=PILOT, sealed=KEYS.seal(PILOT, token(30))))
    assert held.token == token(30)
    held.renew(TokenRenewal(pilot_id=PILOT, sealed=KEYS.seal(PILOT, token(25))))
    held.renew(TokenRenewal(pilot_id=PILOT, sealed=STRANGER.seal(PILOT, token(40))))
    assert held.token == token(30)


def test_signed_orders_are_decoded_and_others_are_counted(held: HeldCredential) -> None:
    topic, key = inbox("A"), PILOT.encode()
    assert held.codec.decode(KEYS.sign(topic, key, encode(ORDER))) == ORDER
    for forged in (
        encode(ORDER),
        STRANGER.sign(topic, key, encode(ORDER)),
        KEYS.sign(inbox("B"), key, encode(ORDER)),
    ):
        assert held.codec.decode(forged) is None
    assert held.codec.refused == 3


def test_a_credential_without_a_key_is_refused() -> None:
    with pytest.raises(Rejected, match="KEY_UNREADABLE"):
        HeldCredential(PILOT, "A", PilotCredential(token(20), "no key"))
