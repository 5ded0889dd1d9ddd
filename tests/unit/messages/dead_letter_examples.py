"""Examples of messages about messages that could not be handled."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from wms.ids import CommandId
from wms.messages import commands, queries, replies

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}
ORDERED: dict[str, Any] = {"command_id": CommandId("c-12"), "client": "cli-7"}
LETTER = replies.DeadLetterLine(
    number=17,
    consumer="job_manager.commands",
    topic="wms.job.commands",
    partition=3,
    offset=1_417,
    arrived_at=AT,
    size=31,
    type="submit",
    sender="ann",
    error="StatementTimeout: a statement was stopped",
    state="asked",
)

FULL: dict[str, msgspec.Struct] = {
    "list-dead-letters": queries.ListDeadLetters(
        **ASKED, consumer="job_manager.commands", replayed=True, before=99, limit=10
    ),
    "show-dead-letter": queries.ShowDeadLetter(**ASKED, letter=17),
    "replay-dead-letters": commands.ReplayDeadLetters(**ORDERED, letters=(17, 18), reason="mended"),
    "drop-dead-letters": commands.DropDeadLetters(**ORDERED, letters=(17,), reason="a test"),
    "skip-message": commands.SkipMessage(
        **ORDERED,
        consumer="job_manager.queries",
        topic="wms.job.queries",
        partition=2,
        offset=1_417,
        reason="too slow",
    ),
    "dead-letters": replies.DeadLetters(**ASKED, letters=(LETTER,), before=17),
    "dead-letter": replies.DeadLetterDetail(
        **ASKED,
        letter=LETTER,
        cluster_id="k-1",
        key="ann",
        sender=replies.LetterSender(
            kind="user", owner="ann", owner_group="higgs", vo="atlas", token_id="0f3c"
        ),
        payload='{"type":"submit"}',
        is_cut=True,
    ),
}
MINIMAL: dict[str, msgspec.Struct] = {
    "list-dead-letters": queries.ListDeadLetters(query_id="q"),
    "show-dead-letter": queries.ShowDeadLetter(query_id="q", letter=1),
    "replay-dead-letters": commands.ReplayDeadLetters(command_id=CommandId("c"), letters=(1,)),
    "drop-dead-letters": commands.DropDeadLetters(command_id=CommandId("c"), letters=(1,), reason="r"),
    "skip-message": commands.SkipMessage(
        command_id=CommandId("c"), consumer="x", topic="t", partition=0, offset=0, reason="r"
    ),
    "dead-letters": replies.DeadLetters(query_id="q", client="", letters=()),
    "dead-letter": replies.DeadLetterDetail(
        query_id="q",
        client="",
        letter=LETTER,
        cluster_id="",
        key="",
        sender=None,
        payload="",
    ),
}
