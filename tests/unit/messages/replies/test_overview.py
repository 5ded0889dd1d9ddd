"""What an overview and a report on progress may say."""

import msgspec
import pytest

from tests.unit.messages.overview_examples import FULL, MINIMAL
from wms.messages import replies


def test_an_overview_of_nothing_has_no_lines() -> None:
    overview = MINIMAL["overview"]
    assert isinstance(overview, replies.Overview)
    assert (overview.outcomes, overview.waits, overview.pilot_ends, overview.services) == ((), (), (), ())


def test_a_line_of_progress_counts_no_fewer_than_no_jobs() -> None:
    said = msgspec.json.encode(FULL["progress"]).replace(b'"ended_recently":12', b'"ended_recently":-1')
    with pytest.raises(msgspec.ValidationError, match="ended_recently"):
        msgspec.json.decode(said, type=replies.Progress)
