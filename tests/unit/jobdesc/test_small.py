"""Small descriptions, which a service reads at once."""

import pytest

from wms.jobdesc.small import SMALL_BYTES, SMALL_EXPRESSIONS, is_small

TEXT = b"y" * SMALL_EXPRESSIONS


@pytest.mark.parametrize(
    ("raw", "small"),
    [
        (b'{"executable":"x"}', True),
        (b'{"executable":"x","requirements":"' + TEXT + b'"}', True),
        (b'{"executable":"x","requirements":"' + TEXT + b'","rank":"y"}', False),
        (b'{"executable":"' + b"y" * SMALL_BYTES + b'"}', False),
        (b'{"executable":"x","parameters":{"a":{"step":1}}}', False),
        (b'{"executable":"x","unknown":1}', False),
        (b'[{"executable":"x"}]', False),
        (b"[" * 4_000, False),
        (b"\xff", False),
    ],
)
def test_a_small_description_is_plain_and_its_expressions_are_short(raw: bytes, *, small: bool) -> None:
    assert is_small(raw) == small
