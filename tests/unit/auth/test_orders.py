"""Only the services can tell a pilot what to do, and only that pilot, whatever is said on its topic."""

import json
import os
import time
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from wms.auth.envelope import ENVELOPE_BYTES
from wms.auth.keys import generate_keys
from wms.auth.orders import ORDERS_KEY, OrderKeys, PilotCredential, PilotKey, claimed_end
from wms.errors import Rejected

TOPIC, PILOT = "wms.site.a.inbox", "p-1"
ORDER = b'{"type":"kill","pilot_id":"p-1","jobs":[[1,1]]}'
LIMIT = 10_000
OLD, NEW = b"o" * 32, b"n" * 32


def key_of(keys: OrderKeys, pilot_id: str = PILOT) -> PilotKey:
    return PilotKey(pilot_id, keys.of_pilot(pilot_id))


def refusal(key: PilotKey, payload: bytes, topic: str = TOPIC) -> str:
    with pytest.raises(Rejected) as caught:
        key.verified(topic, payload, LIMIT)
    return caught.value.code


def test_a_signed_order_is_read_as_it_was_written() -> None:
    keys = OrderKeys([NEW])
    signed = keys.sign(TOPIC, PILOT.encode(), ORDER)
    assert bytes(key_of(keys).verified(TOPIC, signed, LIMIT)) == ORDER
    assert json.loads(signed)["order"] == json.loads(ORDER)
    assert len(signed) <= len(ORDER) + ENVELOPE_BYTES


@pytest.mark.parametrize(
    "payload",
    [
        ORDER,
        b"",
        b"[" * 100_000,
        b'{"macs":[],"order":' + ORDER + b"}",
        b'{"macs":["","' + b"A" * 44 + b'"],"order":' + ORDER + b"}",
        b'{"macs":["\\u00e9"],"order":' + ORDER + b"}",
        OrderKeys([OLD]).sign(TOPIC, PILOT.encode(), ORDER),
        OrderKeys([NEW]).sign(TOPIC, b"p-2", ORDER),
        OrderKeys([NEW]).sign("wms.site.b.inbox", PILOT.encode(), ORDER),
        OrderKeys([NEW]).sign(TOPIC, PILOT.encode(), ORDER).replace(b"[1,1]", b"[1,2]"),
        OrderKeys([NEW]).sign(TOPIC, PILOT.encode(), ORDER).replace(b'"order":', b'"order": '[:9]).replace(b"[[1,1]]", b"[[1, 1]]"),
    ],
    ids=["unsigned", "nothing", "deep", "no mac", "wrong macs", "strange mac", "another secret", "another pilot",
         "another site", "changed", "written otherwise"],
)  # fmt: skip
def test_what_the_services_did_not_sign_for_this_pilot_is_refused(payload: bytes) -> None:
    assert refusal(key_of(OrderKeys([NEW])), payload) == "ORDER_FORGED"


def test_pilots_sent_before_and_after_a_new_secret_are_both_served() -> None:
    before, after = key_of(OrderKeys([OLD])), key_of(OrderKeys([NEW, OLD]))
    signed = OrderKeys([NEW, OLD]).sign(TOPIC, PILOT.encode(), ORDER)
    assert before.verified(TOPIC, signed, LIMIT) == after.verified(TOPIC, signed, LIMIT)
    # Once the old secret is gone, what was sent under it obeys no more.
    assert refusal(before, OrderKeys([NEW]).sign(TOPIC, PILOT.encode(), ORDER)) == "ORDER_FORGED"


def test_a_sealed_token_is_read_by_its_pilot_alone() -> None:
    sealed = OrderKeys([NEW, OLD]).seal(PILOT, "a new token")
    assert "token" not in "".join(sealed)
    assert key_of(OrderKeys([OLD])).opened(sealed) == key_of(OrderKeys([NEW])).opened(sealed) == "a new token"
    for stranger in (key_of(OrderKeys([b"x" * 32])), key_of(OrderKeys([NEW]), "p-2")):
        with pytest.raises(Rejected, match="somebody else"):
            stranger.opened(sealed)
    with pytest.raises(Rejected, match="somebody else"):
        key_of(OrderKeys([NEW])).opened(["", "AAAA", "?"])


def test_the_secret_is_made_once_and_refused_where_others_may_read_it(tmp_path: Path) -> None:
    generate_keys(tmp_path)
    made = (tmp_path / ORDERS_KEY).read_bytes()
    generate_keys(tmp_path)
    assert (tmp_path / ORDERS_KEY).read_bytes() == made
    assert OrderKeys.from_file(tmp_path / ORDERS_KEY).of_pilot(PILOT)
    (tmp_path / ORDERS_KEY).chmod(0o640)
    with pytest.raises(Rejected) as caught:
        OrderKeys.from_file(tmp_path / ORDERS_KEY)
    assert caught.value.code == "KEY_EXPOSED"


@pytest.mark.parametrize("text", ["", "zz", "00", "00" * 32 + "\n" + "11" * 32 + "\n" + "22" * 32, "é"])
def test_a_file_that_holds_no_secrets_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / ORDERS_KEY
    file.touch(mode=0o600)
    file.write_text(text)
    with pytest.raises(Rejected) as caught:
        OrderKeys.from_file(file)
    assert caught.value.code == "KEY_UNREADABLE"


def test_a_credential_is_a_token_and_a_key_and_is_never_shown() -> None:
    credential = PilotCredential("a.b.c", "00" * 32)
    assert PilotCredential.parse(credential.text) == credential
    assert "a.b.c" not in repr(credential)
    assert "00" not in repr(PilotKey(PILOT, "00" * 32))
    for text in ("", "a.b.c", "a b c"):
        with pytest.raises(Rejected):
            PilotCredential.parse(text)


@pytest.mark.parametrize(
    "text", ["", "a.b.c", "a.e30.c", "a.W10.c", "a." + "W" * 9_999, "a.eyJleHAiOiJ4In0.c"]
)
def test_what_is_no_token_ends_at_once(text: str) -> None:
    assert claimed_end(text) == 0.0


def test_the_macs_cost_a_fraction_of_a_signature(capsys: pytest.CaptureFixture[str]) -> None:
    keys, rounds = OrderKeys([NEW]), 2_000
    order = msgspec.json.encode({"type": "offer", "text": "x" * 1_000})
    key, signed = key_of(keys), keys.sign(TOPIC, b"p-1", order)
    private = ec.generate_private_key(ec.SECP256R1())
    es256 = ec.ECDSA(hashes.SHA256())
    signature, public = private.sign(order, es256), private.public_key()
    cost = {
        "HMAC, sign": _microseconds(lambda: keys.sign(TOPIC, b"p-1", order), rounds),
        "HMAC, verify": _microseconds(lambda: key.verified(TOPIC, signed, LIMIT), rounds),
        "ES256, sign": _microseconds(lambda: private.sign(order, es256), rounds // 10),
        "ES256, verify": _microseconds(lambda: public.verify(signature, order, es256), rounds // 10),
    }
    with capsys.disabled():
        if "WMS_SHOW_FIGURES" in os.environ:
            print("\n" + "".join(f"{what}: {each:.1f} us\n" for what, each in cost.items()))
    assert cost["HMAC, sign"] + cost["HMAC, verify"] < cost["ES256, sign"] + cost["ES256, verify"]


def _microseconds(act, rounds: int) -> float:
    began = time.process_time()
    for _ in range(rounds):
        act()
    return (time.process_time() - began) / rounds * 1e6
