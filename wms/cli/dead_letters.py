"""`wms dead-letters`: messages that a service could not handle, and messages that block their Kafka partitions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wms.cli.blocked_messages import BLOCKED, line_of, unhandled_row
from wms.cli.options import USUAL, CommonOptions, Flag, WithinBounds
from wms.cli.printing import note, show, show_json, show_output, show_table
from wms.cli.quantities import span, stamp
from wms.cli.session import (
    NOT_ALLOWED,
    OK,
    SOME_FAILED,
    operator_name,
    with_database,
    with_database_and_broker,
)
from wms.decoding import UNDECODABLE
from wms.errors import Rejected
from wms.messages.wire import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wms.auth.principal import Principal
    from wms.bus.kafka import Kafka
    from wms.client import ClientSettings
    from wms.db.database import Database

What = Literal["list", "show", "replay", "drop", "skip", "blocked", "orders"]
PAGE_LIMIT = 1_000
NAMED_LIMIT = 10_000
SHOWN_PAYLOAD = 10_000
COLUMNS = ("LETTER>", "AGE>", "CONSUMER", "MESSAGE", "TYPE", "SENDER", "SIZE>", "STATE", "WHY")
ORDERS = ("WHEN", "OPERATOR", "ORDER", "OF", "WHY")


def dead_letters(
    what: Annotated[
        What,
        Parameter(
            help="list, show ID..., replay ID..., drop ID..., blocked, skip CONSUMER TOPIC/PARTITION OFFSET, or orders"
        ),
    ] = "list",
    *words: str,
    consumer: str = "",
    before: Annotated[int | None, Parameter(validator=WithinBounds(1, 2**62))] = None,
    replayed: Flag = False,
    limit: Annotated[int, Parameter(validator=WithinBounds(1, PAGE_LIMIT))] = 50,
    reason: str = "",
    force: Flag = False,
    common: CommonOptions = USUAL,
) -> int:
    """List, show, replay or drop messages that could not be handled; skip one that blocks a partition.

    A replay has a letter handled again, for the sender that was verified when the message arrived. Numbers are given one by one, or as 3-40. `wms status` and `blocked` show messages that block a partition; `skip` moves one to the dead letters. `orders` lists past orders.

    For example:
      wms dead-letters
      wms dead-letters --consumer matcher.requests --before 1200
      wms dead-letters show 3
      wms dead-letters replay 3 4 10-14
      wms dead-letters drop 5 --reason 'a test'
      wms dead-letters blocked
      wms dead-letters skip job_manager.queries wms.job.queries/2 1417 --reason 'too slow'

    Parameters
    ----------
    words
        Numbers of letters; for skip the consumer, the partition and the offset.
    consumer
        List only the letters of this consumer.
    before
        List letters with lower numbers than this: the next page.
    replayed
        Also list letters that have been replayed successfully.
    limit
        The most letters to list.
    reason
        The reason, which is kept. Required for drop and skip.
    force
        Skip the message even if it is being handled now: end its transaction.
    """
    match what:
        case "list":
            return _list(common, consumer, before, limit, replayed=replayed)
        case "orders":
            return _orders(common, limit)
        case "blocked":
            return _blocked(common)
        case "skip":
            return _skip(common, words, reason, force=force)
        case _:
            return _by_number(common, what, numbers(words), reason)


def numbers(words: Sequence[str]) -> list[int]:
    """Return the numbers of dead letters in words such as `3 4 10-14`. Raise Rejected for other words, or for too many numbers."""
    found: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or word.endswith("-") or len(word) > 40:
            raise Rejected(
                "BAD_OPTION", f"{word!r} is no number of a letter", "`wms dead-letters` lists them"
            )
        low, high = int(first), int(last or first)
        if high - low >= NAMED_LIMIT or len(found) >= NAMED_LIMIT or high > 2**63 - 1:
            raise Rejected("BAD_OPTION", f"{word!r} names too many letters", f"at most {NAMED_LIMIT:,}")
        found += range(low, high + 1)
    if not found:
        raise Rejected("BAD_OPTION", "no letter is named", "give numbers: `wms dead-letters` lists them")
    return found


# --- letters ------------------------------------------------------------------------------------------


def _list(common: CommonOptions, consumer: str, before: int | None, limit: int, *, replayed: bool) -> int:
    from wms.db.dead_letter import LetterPage, page

    wanted = LetterPage(
        limit=min(max(limit, 1), PAGE_LIMIT), before=before, replayed=replayed, consumer=consumer
    )

    async def work(db: "Database") -> int:
        async with db.transaction() as tx:
            found = await page(tx, wanted)
        _show_list(found, common)
        if len(found) == wanted.limit and not common.json:
            note(f"more: --before {found[-1]['dead_letter_id']}")
        return OK

    return with_database(common, work)


def _show_list(found: Sequence[Any], common: CommonOptions) -> None:
    if common.json:
        for each in found:
            show_json(_line(each))
        return
    rows = [
        (
            each["dead_letter_id"],
            span(each["age"]),
            each["consumer"],
            f"{each['topic']}/{each['partition']}@{each['message_offset']}",
            type_of(each["beginning"]),
            each["sender"] or "-",
            f"{each['size']:,}",
            _state(each),
            each["error"][:200],
        )
        for each in found
    ]
    show_table(COLUMNS, rows, empty="no dead letters")


def _line(each: Any) -> dict[str, Any]:
    line = {name: value for name, value in each.items() if name != "beginning"}
    return {**line, "type": type_of(each["beginning"]), "state": _state(each)}


def _state(each: Any) -> str:
    return "replayed" if each["replayed_at"] else "asked" if each["replay_requested_at"] else "dead"


def _by_number(common: CommonOptions, what: What, ids: list[int], reason: str) -> int:
    if what == "drop" and not reason.strip():
        raise Rejected("NO_REASON", "to drop letters needs a reason", "give --reason")

    async def work(db: "Database") -> int:
        match what:
            case "show":
                return await _show(db, ids, common)
            case "replay":
                return await _replay(db, ids, reason, common)
            case _:
                return await _drop(db, ids, reason, common)

    return with_database(common, work)


async def _show(db: "Database", ids: list[int], common: CommonOptions) -> int:
    from wms.db.dead_letter import whole

    async with db.transaction() as tx:
        found = await whole(tx, ids)
    for each in found:
        if common.json:
            show_json(_whole(each))
        else:
            show_output(_shortened(each))
    return _outcome({each["dead_letter_id"] for each in found}, ids)


def _shortened(each: Any) -> str:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(_whole(each)), indent=2).decode()
    if len(text) <= SHOWN_PAYLOAD:
        return text + "\n"
    return f"{text[:SHOWN_PAYLOAD]}\n... {len(text) - SHOWN_PAYLOAD:,} more characters: --json\n"


def _whole(row: Any) -> dict[str, Any]:
    import msgspec

    letter = dict(row)
    letter["key"] = (letter["key"] or b"").decode("utf-8", "replace")
    letter["size"] = len(letter["payload"])
    try:
        letter["payload"] = msgspec.json.decode(letter["payload"])
    except UNDECODABLE:
        letter["payload"] = letter["payload"].decode("utf-8", "backslashreplace")
    letter["principal"] = msgspec.json.decode(letter["principal"]) if letter["principal"] else None
    return letter


async def _replay(db: "Database", ids: list[int], reason: str, common: CommonOptions) -> int:
    from wms.db import dead_letter, operator_order

    async with db.transaction() as tx:
        asked = await dead_letter.ask_replay(tx, ids)
        subjects = [f"letter {each}" for each in asked]
        await operator_order.record(tx, operator_name(common), "replay", subjects, reason)
    if common.json:
        show_json({"asked": len(asked), "letters": sorted(asked)})
    else:
        show(f"{len(asked)} asked for; `wms dead-letters` shows those that do not work again")
    return _outcome(set(asked), ids)


async def _drop(db: "Database", ids: list[int], reason: str, common: CommonOptions) -> int:
    from wms.db import dead_letter, operator_order

    async with db.transaction() as tx:
        dropped = await dead_letter.drop(tx, ids)
        await operator_order.record(tx, operator_name(common), "drop", list(dropped.values()), reason)
    if common.json:
        show_json({"dropped": len(dropped), "letters": sorted(dropped)})
    else:
        show(f"{len(dropped)} dropped")
    return _outcome(set(dropped), ids)


def _outcome(done: set[int], ids: list[int]) -> int:
    """Print which dead letters in `ids` do not exist, that is are not in `done`. Return the exit code: not 0 if any is missing."""
    if missing := [each for each in ids if each not in done]:
        named = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        note(f"no such letter: {named}")
    return OK if not missing else SOME_FAILED if done else NOT_ALLOWED


def _orders(common: CommonOptions, limit: int) -> int:
    from wms.db.operator_order import latest

    async def work(db: "Database") -> int:
        async with db.transaction() as tx:
            found = await latest(tx, min(max(limit, 1), PAGE_LIMIT))
        if common.json:
            for each in found:
                show_json(dict(each))
            return OK
        rows = [
            (
                stamp(each["ordered_at"]),
                each["operator"],
                each["action"],
                each["subject"],
                each["reason"],
            )
            for each in found
        ]
        show_table(ORDERS, rows, empty="nothing was ordered")
        return OK

    return with_database(common, work)


# --- what blocks --------------------------------------------------------------------------------------


def _skip(common: CommonOptions, words: Sequence[str], reason: str, *, force: bool) -> int:
    from wms.bus.blocked_messages import SkipOrder, set_aside

    blocked = _named(words)
    if not reason.strip():
        raise Rejected("NO_REASON", "to skip a message needs a reason", "give --reason")
    order = SkipOrder(operator=operator_name(common), reason=reason, force=force)

    async def work(db: "Database", kafka: "Kafka", settings: "ClientSettings") -> int:
        message = await set_aside(db, kafka, blocked, order, _verify_with(settings))
        if common.json:
            show_json({"skipped": blocked, "type": type_of(message.payload), "bytes": len(message.payload)})
        else:
            show(
                f"skipped {type_of(message.payload)}, {len(message.payload):,} bytes; it is among the dead letters now"
            )
        return OK

    return with_database_and_broker(common, work)


def _named(words: Sequence[str]) -> Any:
    from wms.bus.blocked_messages import MessagePosition

    match list(words):
        case [consumer, place, at] if at.isdecimal() and place.rpartition("/")[2].isdecimal():
            topic, _, partition = place.rpartition("/")
            return MessagePosition(consumer=consumer, topic=topic, partition=int(partition), offset=int(at))
        case _:
            raise Rejected(
                "BAD_OPTION",
                "skip names one message exactly: CONSUMER TOPIC/PARTITION OFFSET",
                "`wms dead-letters blocked` prints these words for what blocks",
            )


def _verify_with(settings: "ClientSettings") -> "Callable[[str], Principal | None]":
    """Return a function that verifies a token with the system's public keys and returns its principal.

    It returns None for an invalid token, or if the settings name no file of keys.
    """
    from pathlib import Path

    from wms.auth.token import Verifier
    from wms.runtime import clock

    verifier = Verifier.from_file(Path(settings.auth.jwks)) if settings.auth.jwks else None

    def verify(token: str) -> "Principal | None":
        try:
            return verifier.verify(token, clock.timestamp()) if verifier else None
        except Rejected:
            return None

    return verify


def _blocked(common: CommonOptions) -> int:
    from wms.bus.blocked_messages import blocking

    async def work(db: "Database", kafka: "Kafka", _: "ClientSettings") -> int:
        found = [line_of(each) for each in await blocking(db, kafka)]
        if common.json:
            for each in found:
                show_json(each)
        else:
            show_table(BLOCKED, map(unhandled_row, found), empty="nothing blocks")
        return SOME_FAILED if found else OK

    return with_database_and_broker(common, work)
