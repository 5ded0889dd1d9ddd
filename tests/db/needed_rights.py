"""The rights that a statement needs, as Postgres itself tells: it prints the tree of each statement that it prepares."""

import re
from collections.abc import Iterable, Iterator

import asyncpg

from tests.db.reached_blocks import ROOT, Use
from wms.db.sql import Blocks

OFFSET = 7
"""What Postgres adds to a column's number in such trees, so that the columns of the system have numbers, too."""
BITS = {1: "insert", 2: "select", 8: "delete"}
UPDATE = 4
LOCK = "lock"
"""What stands for a column where rows are locked and none of their columns changed."""
FIRST_OID = 16_384
"""What has a smaller number came with Postgres."""

_TABLE = re.compile(
    r"\{RTEPERMISSIONINFO :relid (\d+) :inh \w+ :requiredPerms (\d+) :checkAsUser (\d+)"
    r" :selectedCols \(b[ \d]*\) :insertedCols \(b[ \d]*\) :updatedCols \(b([ \d]*)\)"
)
_CALLED = re.compile(r":(?:funcid|opfuncid) (\d+)")
_SEQUENCE = re.compile(r"(?:nextval|setval)\('(\w+)'")

Need = tuple[str, str]
"""What is needed, and on what: `select`, `insert`, `delete` or `update(COLUMN)` on a table, `execute` on a function."""


class Teller:
    """A connection whose server prints the trees of what is prepared."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._printed: list[str] = []
        self._names: dict[int, str] = {}
        self._columns: dict[tuple[int, int], str] = {}
        self._functions: dict[int, str] = {}

    async def open(self) -> None:
        """Have the server print trees, and learn the names of tables, columns and functions."""
        fetch = self._connection.fetch
        for oid, name in await fetch("select oid, relname from pg_class where oid >= $1", FIRST_OID):
            self._names[oid] = name
        for oid, number, name in await fetch(
            "select attrelid, attnum, attname from pg_attribute where attrelid >= $1", FIRST_OID
        ):
            self._columns[oid, number] = name
        for oid, name in await fetch("select oid, proname from pg_proc where oid >= $1", FIRST_OID):
            self._functions[oid] = name
        self._connection.add_log_listener(lambda _, message: self._printed.append(message.detail or ""))
        await self._connection.execute(
            "set debug_print_rewritten = on; set debug_pretty_print = off; set client_min_messages = log"
        )

    async def needs(self, statement: str) -> set[Need]:
        """Return all that the statement needs."""
        self._printed.clear()
        await self._connection.prepare(statement)
        # The server breaks the lines of a tree wherever there is a space.
        tree = " ".join(" ".join(self._printed).split())
        # No table may be passed over.
        assert len(_TABLE.findall(tree)) == tree.count("{RTEPERMISSIONINFO"), tree
        called = {int(oid) for oid in _CALLED.findall(tree)} & self._functions.keys()
        return (
            set(self._of_tables(tree))
            | {("execute", self._functions[oid]) for oid in called}
            | {("update", name) for name in _SEQUENCE.findall(statement)}
        )

    def _of_tables(self, tree: str) -> Iterator[Need]:
        for relid, bits, other, updated in _TABLE.findall(tree):
            # What a view reads it reads for its owner.
            if int(other) or int(relid) < FIRST_OID:
                continue
            table = self._names[int(relid)]
            yield from ((word, table) for bit, word in BITS.items() if int(bits) & bit)
            if int(bits) & UPDATE:
                columns = [self._columns[int(relid), int(each) - OFFSET] for each in updated.split()]
                yield from ((f"update({column})", table) for column in columns or [LOCK])


def statement(use: Use) -> str:
    """Return the text of a block."""
    return Blocks(ROOT / "wms" / "db" / f"{use.noun}.sql")[use.name]


async def needed(teller: Teller, uses: Iterable[Use]) -> set[Need]:
    """Return all that these blocks and copies need."""
    found: set[Need] = set()
    for use in uses:
        found |= await teller.needs(statement(use)) if use.noun else {("insert", use.name)}
    return found
