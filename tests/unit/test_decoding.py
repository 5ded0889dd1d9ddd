"""Whatever others send as JSON fails to decode with an error that is caught."""

import msgspec
import pytest

from wms.decoding import UNDECODABLE


@pytest.mark.parametrize("raw", [b"{", b'"x"', b'{"a":"\xa9"}', b'{"a":' + b"[" * 100_000])
def test_what_cannot_be_decoded_is_caught(raw: bytes) -> None:
    with pytest.raises(UNDECODABLE):
        msgspec.json.decode(raw, type=dict[str, msgspec.Raw] if raw.endswith(b'"x"') else dict)
