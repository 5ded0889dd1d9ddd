"""What `wms site show` says of a site's elements."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.messages.examples import ASKED, SAM_LINE
from wms.cli.options import USUAL
from wms.cli.site import _show
from wms.messages import replies


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({}, "ce01: stations cab, clued0\n"),
        ({"stations": (), "entry_point": "ce01:2119/pbs"}, "ce01: entry point ce01:2119/pbs\n"),
    ],
)
def test_where_jobs_of_the_grid_arrive_is_told(
    said: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _show(replies.SiteDetail(**ASKED, elements=(replace(SAM_LINE, **said),)), USUAL) == 0
    told = capsys.readouterr().out
    assert line in told
    assert ("stations" in told) == (not said)
