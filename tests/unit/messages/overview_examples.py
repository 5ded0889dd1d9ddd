"""Examples of messages about how things go."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.messages import queries, replies

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}

FULL: dict[str, msgspec.Struct] = {
    "show-overview": queries.ShowOverview(**ASKED),
    "show-progress": queries.ShowProgress(**ASKED, limit=20),
    "overview": replies.Overview(
        **ASKED,
        since=AT,
        outcomes=(
            replies.OutcomeLine(
                site="cern", outcome="failed", reason="EXIT_CODE", attempts=3, last_job=1042, last_at=LATER
            ),
        ),
        waits=(
            replies.WaitLine(
                code="SLOTS_BUSY",
                jobs=40,
                queues=2,
                tq_id=7,
                text="all 8 slots that fit are busy",
                advice="it waits until a job there ends",
            ),
        ),
        pilot_ends=(
            replies.PilotEndLine(
                site="cern", ce="ce01", cause="NODE_LOST", pilots=2, last_pilot="p-1", last_at=LATER
            ),
        ),
        services=(
            replies.ServiceLine(
                service="matcher",
                instances=1,
                since=AT,
                lag=5,
                problems=("requests 1: no probe came back for 12 s",),
            ),
        ),
    ),
    "progress": replies.Progress(
        **ASKED,
        recent_seconds=600.0,
        lines=(
            replies.ProgressLine(
                job_group="",
                first=100,
                last=199,
                name="sim-{n}",
                counts={"Running": 60, "Done": 40},
                ended_recently=12,
                submitted_at=AT,
                changed_at=LATER,
            ),
        ),
    ),
}

GROWN: dict[str, msgspec.Struct] = {
    "progress.counted": replies.Progress(**ASKED, recent_seconds=600.0, lines=(), counted_from=4_000_000),
}

MINIMAL: dict[str, msgspec.Struct] = {
    "show-overview": queries.ShowOverview(query_id="q"),
    "show-progress": queries.ShowProgress(query_id="q"),
    "overview": replies.Overview(query_id="q", client="", since=AT),
    "progress": replies.Progress(query_id="q", client="", recent_seconds=600.0, lines=()),
}
