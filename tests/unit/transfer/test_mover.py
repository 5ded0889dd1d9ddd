"""A file on its way out gets its name only under a lease."""

from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer.mover import OutgoingFile


def test_the_lease_is_asked_each_time() -> None:
    answers = iter([True, False])
    sending = OutgoingFile(Path("a"), 1, ".1.1.part", lambda: next(answers))
    sending.commit()
    with pytest.raises(Rejected) as refused:
        sending.commit()
    assert refused.value.code == "LEASE_OVER"
