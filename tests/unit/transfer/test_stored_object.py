"""Copies are bounded, and know what they copied."""

import io

import pytest

from wms.errors import Rejected
from wms.transfer import digest_of
from wms.transfer.stored_object import CHUNK, copied


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
def test_a_copy_is_whole_and_has_its_digest(size: int) -> None:
    data = bytes(size)
    target = io.BytesIO()
    assert copied(io.BytesIO(data), target, size).sha256 == digest_of(data)
    assert target.getvalue() == data
    assert copied(io.BytesIO(data), None, size).size == size


def test_one_byte_over_the_limit_is_refused() -> None:
    with pytest.raises(Rejected, match="limit of 9 bytes"):
        copied(io.BytesIO(bytes(10)), io.BytesIO(), 9)
