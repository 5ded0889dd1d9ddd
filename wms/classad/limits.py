"""Limits of what anyone may write: lengths of texts, sizes of trees, and the work and size of an evaluation."""

from wms.errors import Rejected

TEXT_BYTES = 65_536
"""Bytes of one expression or ad, in UTF-8."""
NODES = 10_000
"""Nodes in the tree of an expression or ad."""
DEPTH = 60
"""Nesting depth of brackets, operators and calls; a chain of && or of || counts as one level."""
RECORDS = 8
"""Nesting depth of records, and of the tables and lists of which an ad is made."""
AD_NODES = 4 * NODES
"""Nodes in the trees of an ad after its attributes are put into each other."""
ATTRIBUTES = 2_000
"""Attributes of an ad."""
NAME_LENGTH = 255
EVALUATION_DEPTH = 120
"""Nesting depth of an evaluation through all the attributes that it references.

The library stops at 400 levels of its own, which count brackets.
"""
WORK = 2_000_000
"""Steps of an evaluation, plus the bytes that they touch, computed before it begins."""
VALUE_BYTES = 65_536
"""Bytes of any intermediate value of an evaluation, computed before it begins."""


def refused(code: str, message: str, place: str, remedy: str = "") -> Rejected:
    """Return the refusal of a text, with its place in the message; `code` lacks its prefix CLASSAD_."""
    return Rejected(f"CLASSAD_{code}", f"{place}: {message}" if place else message, remedy)
