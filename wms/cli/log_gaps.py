"""`wms log-gaps`: ranges of a log that a service did not handle, and the messages that are kept aside since the database was restored."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wms.cli.dead_letters import numbers
from wms.cli.options import USUAL, CommonOptions, Flag
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import stamp
from wms.cli.session import OK, SOME_FAILED, operator_name, with_database
from wms.errors import Rejected
from wms.messages.wire import type_of

if TYPE_CHECKING:
    from wms.db.database import Database, Transaction

What = Literal["list", "show", "take-in", "drop", "acknowledge"]
COLUMNS = ("GAP>", "SEEN", "CONSUMER", "MESSAGES", "CAUSE", "SENT BETWEEN", "KEPT>", "UNDECIDED>")
KEPT = ("GAP>", "LETTER>", "SENT", "SENDER", "TYPE", "SIZE>", "STATE", "ABOUT")
ABOUT_LENGTH = 60
DONE = {"take-in": "are taken in", "drop": "dropped", "acknowledge": "decided"}
OWN_FIELDS = '"type"', '"command_id"', '"client"'


def log_gaps(
    what: Annotated[
        What, Parameter(help="list, show ID..., take-in ID..., drop ID..., or acknowledge ID...")
    ] = "list",
    *words: str,
    sender: str = "",
    every: Annotated[Flag, Parameter(name="--all")] = False,
    reason: str = "",
    common: CommonOptions = USUAL,
) -> int:
    """List messages that no service handled; take in or drop those kept aside since a restore of the database.

    Messages are missing because they were deleted before they were read, or because their topic was made anew. After a restore of the database, orders that the log holds for the state before are kept aside: `show` lists them, `take-in` has them carried out, `drop` deletes them. `wms status` and `wms audit` name a gap until it is acknowledged. Taking in or dropping its last message acknowledges it.

    For example:
      wms log-gaps
      wms log-gaps show 1-4
      wms log-gaps take-in 1-4
      wms log-gaps take-in 1-4 --sender alice
      wms log-gaps drop 1-4 --reason 'all are submitted again'
      wms log-gaps acknowledge 5 --reason 'the users know'

    Parameters
    ----------
    words
        Numbers of gaps, one by one or as 1-4.
    sender
        Take in or drop the messages of this user alone.
    every
        Also list gaps that were acknowledged.
    reason
        The reason, which is kept. Required for drop and acknowledge.
    """
    if what == "list":
        return with_database(common, lambda db: _list(db, common, acknowledged=every))
    ids = numbers(words)
    if what == "show":
        return with_database(common, lambda db: _show(db, ids, common))
    if what != "take-in" and not reason.strip():
        raise Rejected("NO_REASON", f"to {what} needs a reason", "give --reason")
    return with_database(common, lambda db: _decide(db, what, ids, common, sender=sender, reason=reason))


async def _list(db: "Database", common: CommonOptions, *, acknowledged: bool) -> int:
    from wms.db import log_gap

    async with db.transaction() as tx:
        found = await log_gap.page(tx, acknowledged=acknowledged)
    if common.json:
        for each in found:
            show_json(dict(each))
    else:
        show_table(COLUMNS, map(_row, found), empty="no gaps")
    return OK


def _row(gap: Any) -> tuple[object, ...]:
    return (
        gap["log_gap_id"],
        stamp(gap["seen_at"]),
        gap["consumer"],
        messages(gap),
        gap["cause"],
        sent_between(gap),
        gap["kept"],
        "reading" if gap["is_read"] else gap["undecided"],
    )


def in_words(gap: Any) -> str:
    """Return a gap as a text of one line."""
    kept = f", {gap['kept']} kept aside" if gap["kept"] else ""
    between = f"sent between {sent_between(gap)}{kept}"
    return f"gap {gap['log_gap_id']}: {gap['consumer']} {messages(gap)}, {gap['cause']}, {between}"


def messages(gap: Any) -> str:
    """Return the messages of a gap as text: topic, partition, and offsets."""
    last = "" if gap["until_offset"] is None else gap["until_offset"] - 1
    return f"{gap['topic']}/{gap['partition']} {gap['first_offset']}-{last}"


def sent_between(gap: Any) -> str:
    """Return as text when the messages of a gap were sent, as far as it is known."""
    before, after = gap["handled_at"], gap["goes_on_at"] or gap["seen_at"]
    return f"{stamp(before)} and {stamp(after)}" if before else f"the beginning and {stamp(after)}"


async def _show(db: "Database", ids: Sequence[int], common: CommonOptions) -> int:
    from wms.db import log_gap

    async with db.transaction() as tx:
        found = await log_gap.kept(tx, ids)
    if common.json:
        for each in found:
            show_json({name: value for name, value in each.items() if name != "beginning"} | _told(each))
    else:
        show_table(KEPT, map(_kept_row, found), empty="nothing is kept aside")
    return OK


def _kept_row(each: Any) -> tuple[object, ...]:
    told = _told(each)
    sent = stamp(each["sent_at"]) if each["sent_at"] else "-"
    size = f"{each['size']:,}"
    sender = each["sender"] or "- (not verified)"
    return (
        each["log_gap_id"], each["dead_letter_id"], sent, sender, told["type"], size, told["state"], told["about"],
    )  # fmt: skip


def _told(each: Any) -> dict[str, str]:
    """Return what the table and JSON tell of a kept message: its type, what becomes of it, and what it is about."""
    state = "taken in" if each["replayed_at"] else "asked" if each["replay_requested_at"] else "kept"
    return {"type": type_of(each["beginning"]), "state": state, "about": about(each["beginning"])}


def about(beginning: bytes) -> str:
    """Return the beginning of a message's payload as text, without its type and ids of its own, in one line."""
    text = beginning[:1_000].decode("utf-8", "replace").strip("{}")
    fields = [field for field in text.split(",") if not field.startswith(OWN_FIELDS)]
    return ",".join(fields)[:ABOUT_LENGTH]


async def _decide(
    db: "Database", what: What, ids: Sequence[int], common: CommonOptions, *, sender: str, reason: str
) -> int:
    """Take in or drop messages of gaps, or neither, and acknowledge the gaps of which none is left."""
    from wms.db import log_gap, operator_order

    async with db.transaction() as tx:
        given = await log_gap.unacknowledged(tx, ids)
        letters = [] if what == "acknowledge" else await log_gap.undecided(tx, ids, sender)
        await _carry_out(tx, what, letters)
        closed = await log_gap.acknowledge(tx, given)
        whose = f" of {sender}" if sender else ""
        subject = f"gaps {', '.join(map(str, ids))}: {len(letters)} messages{whose}"
        await operator_order.record(tx, operator_name(common), what, [subject], reason)
    left = sorted(set(given) - set(closed))
    if common.json:
        show_json({"messages": len(letters), "acknowledged": sorted(closed), "left": left})
    else:
        show(f"{len(letters)} messages {DONE[what]}, {len(closed)} gaps acknowledged")
        if left:
            note(
                f"not acknowledged: {', '.join(map(str, left))}; some messages are undecided, or not read yet"
            )
    return SOME_FAILED if left or not (closed or letters) else OK


async def _carry_out(tx: "Transaction", what: What, letters: Sequence[int]) -> None:
    from wms.db import dead_letter

    if what == "take-in":
        await dead_letter.ask_replay(tx, letters)
    elif what == "drop":
        await dead_letter.drop(tx, letters)
