"""What offers and decisions may say: names that batch systems take, durations and times within bounds."""

import json
from typing import Any

import pytest

from wms.errors import Rejected
from wms.messages.agreements import Reserve, ToSite
from wms.messages.wire import Codec

CODEC: Codec[ToSite] = Codec(ToSite)
OFFER = {
    "type": "reserve",
    "agreement_id": "1-2-3",
    "job_id": 1,
    "vo": "lhcb",
    "owner": "alice",
    "group": "lhcb_user",
    "site": "glasgow",
    "ce": "ce01",
    "duration_seconds": 60,
}


def decoded(**changed: Any) -> ToSite:
    return CODEC.decode(json.dumps(OFFER | changed).encode())


def test_an_offer_is_read() -> None:
    assert isinstance(decoded(), Reserve)


@pytest.mark.parametrize(
    "changed",
    [
        *(
            {"agreement_id": each}
            for each in ("", "-x", "a b", "a,b", "a=b", "a;b", "../a", "a\n", "é", "a" * 101)
        ),
        *({"cpus": each} for each in (0, -1, 1_000_001, 10**30)),
        *({"duration_seconds": each} for each in (0, -1, 1e18)),
        *({"expires_in_seconds": each} for each in (0, -5, 86_401)),
        {"earliest_start": "9999-12-31T23:59:59Z"},
        {"latest_start": "0001-01-01T00:00:00Z"},
        {"latest_start": "2026-01-01T00:00:00"},
        {"owner": ""},
        {"owner": "alice\u001b[2J"},
    ],
    ids=str,
)
def test_an_offer_out_of_bounds_is_refused_before_anything_is_done(changed: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="MESSAGE_INVALID"):
        decoded(**changed)
