"""What is handed to the server as one text is there what it was here."""

import asyncpg
import pytest

from wms.db.array import joined
from wms.errors import Rejected

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
    "é€𝄞",
    "a,b",
    "",
)


@pytest.mark.parametrize(
    "values", [(), ("plain",), ("a", "b", "c"), AWKWARD, AWKWARD[::-1], ("", ""), ("\x1e",)]
)
async def test_texts_come_back_as_they_were(database: str, values: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(database)
    try:
        found = await connection.fetchval("select string_to_array($1, E'\\x1f')", joined(values))
        assert tuple(found) == values
    finally:
        await connection.close()


@pytest.mark.parametrize("values", [("a\x1fb",), ("\x1f",), ("a", "\x1fb")])
def test_a_text_with_the_separator_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(Rejected, match=r"U\+001F"):
        joined(values)
