"""What `wms log-gaps` says of a gap, and what it asks for."""

from datetime import UTC, datetime

import pytest

from wms.cli.log_gaps import about, in_words, log_gaps
from wms.errors import Rejected

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GAP = {
    "log_gap_id": 3, "consumer": "job_manager.commands", "topic": "wms.job.commands", "partition": 2, "first_offset": 117,
    "until_offset": 244, "cause": "restored", "handled_at": AT, "goes_on_at": None, "seen_at": AT.replace(hour=5), "kept": 12,
}  # fmt: skip


def test_a_gap_is_said_in_a_line() -> None:
    assert in_words(GAP) == (
        "gap 3: job_manager.commands wms.job.commands/2 117-243, restored, "
        "sent between 2026-01-02T03:04:05Z and 2026-01-02T05:04:05Z, 12 kept aside"
    )
    anew = {**GAP, "until_offset": None, "cause": "begun anew", "handled_at": None, "kept": 0}
    assert "wms.job.commands/2 117-, begun anew, sent between the beginning and " in in_words(anew)


def test_what_a_message_is_about_is_said_without_ids_of_its_own() -> None:
    assert about(b'{"type":"control","command_id":"c-1","client":"x","action":"kill","ids":[812]}') == (
        '"action":"kill","ids":[812]'
    )
    assert about(b"\xff\xfe") == "\N{REPLACEMENT CHARACTER}" * 2


@pytest.mark.parametrize("what", ["drop", "acknowledge"])
def test_what_cannot_be_undone_needs_a_reason(what: str) -> None:
    with pytest.raises(Rejected, match="needs a reason"):
        log_gaps(what, "1")  # type: ignore[arg-type]
