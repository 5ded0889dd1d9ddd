"""The envelope of orders and notices: read within one bound, refused by each reader's own code, its codes compared alike."""

from typing import Any

import pytest

from wms.auth.envelope import ENVELOPE_BYTES, SECRETS_LIMIT, Envelopes, begin, is_among, mac
from wms.auth.orders import SignedOrder
from wms.auth.service_signatures import SignedNotice
from wms.errors import Rejected

LIMIT = 1_000
ENVELOPES: dict[str, tuple[Any, bytes]] = {
    "ORDER_FORGED": (Envelopes(SignedOrder, "ORDER_FORGED"), b'{"macs":%s,"order":{"x":"%s"}}'),
    "NOTICE_FORGED": (Envelopes(SignedNotice, "NOTICE_FORGED"), b'{"macs":%s,"at":1,"notice":{"x":"%s"}}'),
}


@pytest.mark.parametrize("code", ENVELOPES)
def test_an_envelope_is_read_within_its_bounds_and_refused_by_its_readers_code(code: str) -> None:
    envelopes, form = ENVELOPES[code]
    assert envelopes.read(form % (b'["a"]', b"y" * LIMIT), LIMIT).macs == ("a",)
    too_many = b'["' + b'","'.join([b"a"] * (SECRETS_LIMIT + 1)) + b'"]'
    wrong = {
        "it is too large": [form % (b"[]", b"y" * (LIMIT + ENVELOPE_BYTES))],
        "it is not signed": [
            b"",
            b"\xff",
            b"{}",
            form % (too_many, b""),
            form % (b'["' + b"a" * 300 + b'"]', b""),
        ],
    }
    for why, payloads in wrong.items():
        for payload in payloads:
            with pytest.raises(Rejected, match=why) as refused:
                envelopes.read(payload, LIMIT)
            assert refused.value.code == code


def test_a_code_is_good_for_its_parts_and_its_key_alone() -> None:
    good = mac(begin(b"k" * 32, b"topic", b"p-1"), b"{}")
    assert is_among(good, (good.decode(),))
    assert is_among(good, ("é", good.decode()))
    assert not is_among(good, ())
    assert not is_among(good, ("é", "", good.decode()[:-1]))
    others = [
        mac(begin(b"l" * 32, b"topic", b"p-1"), b"{}"),
        mac(begin(b"k" * 32, b"topic", b"p-2"), b"{}"),
        mac(begin(b"k" * 32, b"topicp-1"), b"{}"),
    ]
    assert not any(is_among(good, (each.decode(),)) for each in others)
