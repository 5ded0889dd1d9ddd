"""One-time secrets: proofs hold for one exchange of one pilot, and what is sealed is read by the holder of the secret alone."""

import pytest

from wms.auth.orders import OrderKeys
from wms.auth.pilot_secret import PilotSecret
from wms.errors import Rejected

KEYS = OrderKeys([b"s" * 32])
FIRST, SECOND = "0" * 32, "1" * 32


def secret(pilot_id: str = "p-1", keys: OrderKeys = KEYS) -> PilotSecret:
    return keys.secrets_of(pilot_id)[0]


def test_a_proof_holds_for_its_exchange_and_its_pilot_alone() -> None:
    proof = secret().proof(FIRST)
    assert secret().is_proof(proof, FIRST)
    assert not secret().is_proof(proof, SECOND)
    assert not secret("p-2").is_proof(proof, FIRST)
    assert not secret(keys=OrderKeys([b"o" * 32])).is_proof(proof, FIRST)
    assert not secret().is_proof("", FIRST)


def test_what_is_sealed_is_read_by_the_holder_of_the_secret_in_that_exchange() -> None:
    sealed = secret().seal(FIRST, "token key")
    assert secret().opened(FIRST, sealed) == "token key"
    for other, exchange in ((secret("p-2"), FIRST), (secret(), SECOND)):
        with pytest.raises(Rejected) as caught:
            other.opened(exchange, sealed)
        assert caught.value.code == "SEAL_BROKEN"


@pytest.mark.parametrize("sealed", ["", "AAAA", "no base64!", "A" * 1_000])
def test_what_nobody_sealed_is_refused(sealed: str) -> None:
    with pytest.raises(Rejected):
        secret().opened(FIRST, sealed)


def test_the_file_of_a_pilot_has_its_secret_and_not_its_key() -> None:
    text = secret().text
    assert PilotSecret.parse("p-1", text) == secret()
    assert KEYS.of_pilot("p-1") not in text
    assert len({each.text for each in (secret(), secret("p-2"), secret(keys=OrderKeys([b"o" * 32])))}) == 3


@pytest.mark.parametrize("text", ["", "a.b.c 0123", "00" * 31, "zz" * 32])
def test_a_file_without_a_secret_is_refused(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        PilotSecret.parse("p-1", text)
    assert caught.value.code == "NO_TOKEN"


def test_a_pilot_of_before_a_new_secret_of_the_services_still_exchanges_its_own() -> None:
    before, after = OrderKeys([b"a" * 32]), OrderKeys([b"b" * 32, b"a" * 32])
    assert before.secrets_of("p-1")[0] in after.secrets_of("p-1")


def test_nothing_of_the_secret_is_shown() -> None:
    assert secret().secret.hex() not in repr(secret())
