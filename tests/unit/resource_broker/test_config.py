"""What the resource broker may be told, and what it does without being told."""

import msgspec
import pytest

from services.resource_broker.config import Config

LEAST = {"auth": {"jwks": "/keys/jwks.json"}}


def test_no_index_server_of_a_user_is_asked_without_leave() -> None:
    assert msgspec.convert(LEAST, Config).indexes.hosts == []


def test_a_reservation_outlives_the_wait_for_its_decision() -> None:
    terms = msgspec.convert(LEAST, Config).brokering
    assert terms.temporary_seconds > terms.decision_seconds + terms.claim_seconds / 2


@pytest.mark.parametrize("key", ["at_once", "sites_asked", "decision_seconds", "most_attempts", "kept_days"])
def test_nothing_may_be_zero(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        msgspec.convert(LEAST | {"brokering": {key: 0}}, Config)
