"""What the library itself makes of texts, and when two values are the same."""

import itertools
import math

import classad2
import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st

from tests.unit.classad import strategies as texts
from wms.classad import engine
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.value import RecordText
from wms.errors import Rejected

many = settings(max_examples=100, deadline=None)


def by_library(text, own="[]", other="[]"):
    """Evaluate a text as the library reads and scopes it."""
    ads = classad2.ClassAd(own), classad2.ClassAd(other)
    try:
        tree = classad2.ExprTree(text)
    except classad2.ClassAdException:
        with pytest.raises(Rejected):
            Expression.parse(text)
        return assume(False)
    return engine.value(engine.evaluate(tree, *ads), lambda each: engine.evaluate(each, *ads))


def same(one, two):
    if isinstance(one, RecordText) and isinstance(two, RecordText):
        # Texts of records are as they were written, with or without what was put into them.
        return True
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(itertools.starmap(same, zip(one, two, strict=True)))
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return type(one) is type(two) and one == two


def read(text):
    try:
        return Expression.parse(text)
    except Rejected:
        assume(False)
        raise


def sound(text):
    try:
        return Ad.parse(text)
    except Rejected as refusal:
        # What grows too large, `self` in a record, or a membership in another's list is refused; all else must be read.
        if not any(code in refusal.code for code in ("_TOO_", "_SCOPE", "_FUNCTION")):
            raise
        assume(False)
        raise


OPEN_OWN = st.fixed_dictionaries(
    {
        "a": texts.trees(st.one_of(texts.literals, st.sampled_from(["TARGET.x", "cee", "other.zed"]))),
        "cee": texts.values,
    }
)


OPEN_OTHER = st.fixed_dictionaries(
    {
        "x": texts.values,
        "Y": texts.trees(st.one_of(texts.literals, st.sampled_from(["TARGET.cee", "x", "MY.Tags"]))),
        "zed": texts.trees(st.one_of(texts.literals, st.sampled_from(["x", "self.x"]))),
        "Tags": st.one_of(texts.values, st.just("[k = TARGET.cee; x = 5; y = x]")),
    }
)
