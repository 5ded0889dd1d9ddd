"""How jobs of a list look in a notebook."""

from datetime import UTC, datetime

from msgspec.structs import replace

from wms.messages.replies import JobLine

AT = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_job_is_one_short_line() -> None:
    job = JobLine(
        job_id=7,
        name="fit",
        owner="ada",
        owner_group="users",
        vo="lhcb",
        state="Waiting",
        reason="QUEUED",
        site=None,
        attempts=0,
        submitted_at=AT,
        changed_at=AT,
    )
    assert repr(job) == "<job 7 'fit': Waiting, QUEUED>"
    assert repr(replace(job, site="CERN", state="Done", reason="DONE")) == "<job 7 'fit': Done at CERN, DONE>"
