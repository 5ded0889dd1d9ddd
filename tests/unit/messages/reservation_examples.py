"""Examples of messages about reservations for jobs."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.agreement.state import AgreementState
from wms.ids import AgreementId, CommandId
from wms.messages import commands, queries, replies

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
OVER = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
JOB = 4_000_000_017
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}
CURSOR = queries.ReservationCursor(AT, "4000000017-2-1-1")

CONFIRMED = replies.ReservationLine(
    agreement_id="4000000017-2-1-1",
    job_id=JOB,
    owner="alice",
    owner_group="lhcb_user",
    vo="lhcb",
    site="glasgow",
    ce="ce01",
    state="Confirmed",
    cpus=4,
    duration_seconds=3_600.0,
    earliest_start=LATER,
    latest_start=OVER,
    flexible=True,
    start_at=LATER,
    ends_at=OVER,
    reservation="wms-17",
    expires_at=LATER,
    used_at=LATER,
    reason="CONFIRMED",
    reason_text="the broker chose it",
    created_at=AT,
    changed_at=AT,
)

FULL: dict[str, msgspec.Struct] = {
    "cancel-reservations": commands.CancelReservations(
        command_id=CommandId("c-30"),
        agreements=(AgreementId("4000000017-2-1-1"), AgreementId("4000000018-2-1-1")),
        reason="the data are not there yet",
        client="cli-7",
    ),
    "list-reservations": queries.ListReservations(
        **ASKED,
        job_id=JOB,
        owner="alice",
        site="glasgow",
        ce="ce01",
        states=(AgreementState.TEMPORARY, AgreementState.CONFIRMED),
        after=CURSOR,
        limit=20,
    ),
    "reservations": replies.Reservations(**ASKED, lines=(CONFIRMED,), after=CURSOR),
}
MINIMAL: dict[str, msgspec.Struct] = {
    "cancel-reservations": commands.CancelReservations(
        command_id=CommandId("c"), agreements=(AgreementId("a"),)
    ),
    "list-reservations": queries.ListReservations(query_id="q"),
    "reservations": replies.Reservations(query_id="q", client="", lines=()),
}
