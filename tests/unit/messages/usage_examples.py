"""Examples of messages about usage."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.messages import queries, replies

AT = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2026, 4, 1, tzinfo=UTC)
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}

FULL: dict[str, msgspec.Struct] = {
    "show-usage": queries.ShowUsage(**ASKED, by=("vo", "month"), since=AT, until=LATER, after=10, limit=50),
    "usage-report": replies.UsageReport(
        **ASKED,
        by=("vo", "month"),
        lines=(
            replies.UsageLine(
                key=("atlas", "2026-03"),
                attempts=12,
                done=10,
                cpu_seconds=1_800.5,
                wall_seconds=3_600.0,
                slot_seconds=7_200.0,
                mean_rss_bytes=1_000_000,
                max_rss_bytes=2_000_000,
                waste=(
                    replies.WasteLine(reason="EXIT_CODE", slot_seconds=900.0),
                    replies.WasteLine(reason="NODE_LOST", slot_seconds=60.5),
                ),
            ),
        ),
        after=60,
    ),
}

MINIMAL: dict[str, msgspec.Struct] = {
    "show-usage": queries.ShowUsage(query_id="q", since=AT),
    "usage-report": replies.UsageReport(query_id="q", client="", by=(), lines=()),
}
