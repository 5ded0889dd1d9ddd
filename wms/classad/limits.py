"""Limits of ClassAd texts that anyone may write: lengths of texts, sizes of trees, and the work and size of an evaluation."""

from wms.errors import Rejected

TEXT_BYTES = 65_536
"""The greatest length of an expression or ad, in bytes of UTF-8."""
NODES = 10_000
"""The greatest number of nodes in the tree of an expression or ad."""
DEPTH = 60
"""The greatest nesting depth of brackets, operators and calls; a chain of && or of || counts as one level."""
RECORDS = 8
"""The greatest nesting depth of records, and of the dictionaries and lists of which an ad is made."""
AD_NODES = 4_000
"""The greatest number of nodes in the expressions of an ad after references between its attributes are replaced by the referenced trees.

Stored ads are parsed in event loops, at 10 us a node.
"""
ATTRIBUTES = 2_000
"""The greatest number of attributes of an ad."""
NAME_LENGTH = 255
EVALUATION_DEPTH = 120
"""The greatest nesting depth of an evaluation, through all attributes that it references.

The library stops at 400 levels of its own, which count brackets.
"""
WORK = 500_000
"""The greatest number of steps of an evaluation, plus the bytes that they touch, computed before it begins.

They take at most 2.5 ms. Of the pattern `lcg.*cern.*x`, which takes most, it allows texts of 79 bytes.
"""
VALUE_BYTES = 65_536
"""The greatest size in bytes of any intermediate value of an evaluation, computed before it begins."""


def refused(code: str, message: str, place: str, remedy: str = "") -> Rejected:
    """Return the error for a text that breaks a limit or rule. `place` begins the message, and CLASSAD_ is put before `code`."""
    return Rejected(f"CLASSAD_{code}", f"{place}: {message}" if place else message, remedy)
