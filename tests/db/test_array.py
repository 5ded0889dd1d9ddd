"""What is handed to the server as the literal of an array is there what it was here."""

import asyncpg
import pytest

from wms.db.array import texts

AWKWARD = (
    "",
    " ",
    "a",
    'say "so"',
    "back\\slash",
    "{",
    "}",
    ",",
    "NULL",
    "null",
    "\n\t",
    "'",
    '\\"',
    "é€𝄞",
    "a,b",
    '","',
)


@pytest.mark.parametrize("values", [(), ("plain",), ("a", "b", "c"), AWKWARD, AWKWARD[::-1], ('"',), ("\\",)])
async def test_texts_come_back_as_they_were(database: str, values: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(database)
    try:
        assert tuple(await connection.fetchval("select $1::text::text[]", texts(values))) == values
    finally:
        await connection.close()
