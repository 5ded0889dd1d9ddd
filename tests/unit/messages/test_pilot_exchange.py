"""The id of an exchange is 128 random bits in hexadecimal digits, and nothing else is taken for one."""

import pytest

from tests.unit.messages.exchange_examples import FULL
from wms.errors import Rejected
from wms.messages.pilot_exchange import SecretExchange
from wms.messages.wire import Codec, encode

CODEC: Codec[SecretExchange] = Codec(SecretExchange)
GOOD = encode(FULL["secret-exchange"])


def test_an_exchange_is_read_as_it_was_written() -> None:
    assert CODEC.decode(GOOD) == FULL["secret-exchange"]


@pytest.mark.parametrize("name", [b"", b"0" * 31, b"0" * 33, b"Z" * 32, b"F" * 32, b"0" * 31 + b"\\n"])
def test_other_ids_are_refused(name: bytes) -> None:
    with pytest.raises(Rejected):
        CODEC.decode(GOOD.replace(b"0123456789abcdef0123456789abcdef", name))
