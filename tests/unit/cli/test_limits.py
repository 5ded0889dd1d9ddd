"""Limits at the command line."""

import pytest

from tests.unit.cli.test_bad_input import limit
from wms.cli.limits import only_kind
from wms.errors import Rejected
from wms.matching.limits import LimitKey
from wms.messages.replies import LimitLine, LimitList


@pytest.mark.parametrize(
    ("lines", "reset", "found"),
    [
        ((limit("waiting", "set"),), True, "waiting"),
        ((limit("waiting", "set"), limit("running", "file")), True, "waiting"),
        ((limit("waiting", "file"),), False, "waiting"),
        ((limit("waiting", "set"), limit("running", "set")), True, "--kind running or waiting"),
        ((limit("waiting", "file"),), True, "no limit is set or lifted"),
        ((limit("waiting", "set", lifted=True),), False, "no limit is there"),
        ((), True, "no limit is set or lifted"),
    ],
)
def test_the_one_limit_on_these_jobs_is_dropped_whatever_its_kind(
    lines: tuple[LimitLine, ...],
    reset: bool,  # noqa: FBT001 - a column of the table above
    found: str,
) -> None:
    key = LimitKey("", "", "owner", "*")
    told = LimitList(query_id="q", client="", limits=lines, counts=())
    if found in ("running", "waiting"):
        assert only_kind(told, key, reset=reset) == found
    else:
        with pytest.raises(Rejected, match=found):
            only_kind(told, key, reset=reset)
