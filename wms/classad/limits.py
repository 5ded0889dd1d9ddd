"""Limits of what anyone may write: texts, trees, and the work and size of a value."""

from wms.errors import Rejected

TEXT_BYTES = 65_536
"""Of one expression or ad, in UTF-8."""
NODES = 10_000
"""Of the tree of an expression or ad."""
DEPTH = 60
"""Of brackets, operators and calls in each other; chains of && and of || count as one."""
RECORDS = 8
"""Of records in each other, and of tables and lists that an ad is made of."""
AD_NODES = 4 * NODES
"""Of an ad when what its attributes say of each other is put into them."""
ATTRIBUTES = 2_000
"""Of an ad."""
NAME_LENGTH = 255
EVALUATION_DEPTH = 120
"""Of an evaluation, through all the attributes it goes through; the library gives up at 400 levels of its own, which count
brackets."""
WORK = 2_000_000
"""Steps and bytes that an evaluation may touch at most, reckoned before it begins."""
VALUE_BYTES = 65_536
"""Of any value on the way, reckoned likewise."""


def refused(code: str, message: str, place: str, remedy: str = "") -> Rejected:
    """Return the refusal of a text, which names the place; `code` without its CLASSAD_."""
    return Rejected(f"CLASSAD_{code}", f"{place}: {message}" if place else message, remedy)
