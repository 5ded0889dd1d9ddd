"""`wms dead-letters`, `wms audit`, `wms migrate`: for whoever runs a system; they read its database."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Common, Flag
from wms.cli.printing import note, show, show_json, show_pretty_json, show_table
from wms.cli.session import (
    BAD_INPUT,
    NOT_ALLOWED,
    OK,
    SOME_FAILED,
    postgres_url,
    quiet,
    run_async,
    with_database,
)

if TYPE_CHECKING:
    from wms.db.database import Database

MANY = 10_000


def dead_letters(
    what: Annotated[
        Literal["list", "show", "replay"], Parameter(help="list, show ID, or replay ID...")
    ] = "list",
    *ids: int,
    all: Flag = False,  # noqa: A002 - the option's name
    replayed: Flag = False,
    limit: int = 50,
    common: Common = USUAL,
) -> int:
    """List, show or replay messages that could not be handled.

    A letter is tried again with the identity that was verified when it came.

    For example:
      wms dead-letters
      wms dead-letters show 3
      wms dead-letters replay 3 4
      wms dead-letters replay --all

    Parameters
    ----------
    ids
        Numbers of letters.
    all
        All letters.
    replayed
        Those that worked the second time, too.
    limit
        At most so many.
    """

    async def work(db: "Database") -> int:
        if what == "replay":
            return await _replay(db, ids, common, everything=all)
        from wms.db.dead_letter import letters

        async with db.transaction() as tx:
            found = await letters(tx, MANY if ids else limit, replayed=replayed or bool(ids))
        if what == "list":
            return _show_letters(found, common)
        return _show_whole([each for each in found if all or each["dead_letter_id"] in ids], common)

    return with_database(common, work)


async def _replay(db: "Database", ids: tuple[int, ...], common: Common, *, everything: bool) -> int:
    from wms.db.dead_letter import ask_replay

    if not ids and not everything:
        note("wms: no letter is named\n  give their numbers, or --all")
        return BAD_INPUT
    async with db.transaction() as tx:
        count = await ask_replay(tx, ids, everything=everything)
    if common.json:
        show_json({"asked": count})
    else:
        show(f"{count} asked for; `wms dead-letters` shows those that do not work again")
    return OK if count else SOME_FAILED


def _show_letters(found: list[Any], common: Common) -> int:
    if common.json:
        for each in found:
            show_json(_whole(each))
        return OK
    rows = [
        (
            each["dead_letter_id"],
            f"{each['arrived_at']:%Y-%m-%d %H:%M:%S}",
            each["consumer"],
            f"{each['topic']}/{each['partition']}@{each['message_offset']}",
            "replayed" if each["replayed_at"] else "asked" if each["replay_requested_at"] else "dead",
            each["error"][:200],
        )
        for each in found
    ]
    show_table(("LETTER>", "ARRIVED", "CONSUMER", "MESSAGE", "STATE", "WHY"), rows, empty="no dead letters")
    return OK


def _show_whole(found: list[Any], common: Common) -> int:
    for each in found:
        (show_json if common.json else show_pretty_json)(_whole(each))
    if not found:
        note("no such letter")
    return OK if found else NOT_ALLOWED


def _whole(row: Any) -> dict[str, Any]:
    import msgspec

    letter = dict(row)
    letter["key"] = (letter["key"] or b"").decode("utf-8", "replace")
    try:
        letter["payload"] = msgspec.json.decode(letter["payload"])
    except (msgspec.DecodeError, UnicodeDecodeError):
        letter["payload"] = letter["payload"].decode("utf-8", "backslashreplace")
    letter["principal"] = msgspec.json.decode(letter["principal"]) if letter["principal"] else None
    return letter


def audit(*, verbose: Flag = False, common: Common = USUAL) -> int:
    """Check the system's invariants in its database.

    No job lost, none given away twice, history and states agree. It shares no code with the services. Exit code 1 when a check finds something.

    For example:
      wms audit
      wms audit --verbose
      wms audit --json

    Parameters
    ----------
    verbose
        The checks that hold, too.
    """
    from wms.audit import audit as audited
    from wms.db.database import GONE
    from wms.errors import Unavailable

    quiet()
    try:
        report = run_async(audited(postgres_url(common)))
    except GONE as error:
        raise Unavailable(f"no connection to Postgres: {error}") from error
    if common.json:
        show_json({"ok": report.ok, "checks": report.checks, "notes": report.notes})
    else:
        show(report.text(brief=not verbose))
    return OK if report.ok else SOME_FAILED


def migrate(*, check: Flag = False, common: Common = USUAL) -> int:
    """Bring the database's schema up to this version.

    Safe at any time, and by several at once.

    For example:
      wms migrate
      wms migrate --check

    Parameters
    ----------
    check
        Change nothing; fail when the schema is not this version's.
    """
    from wms.db import migrate as migrations

    quiet()
    url = postgres_url(common)
    if check:
        run_async(migrations.check(url))
        applied: list[str] = []
    else:
        applied = run_async(migrations.migrate(url))
    if common.json:
        show_json({"applied": applied})
    else:
        show("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")
    return OK
