"""The attributes of JDL."""

from wms.jobdesc.languages.jdl import ELEMENTS, HANDLERS
from wms.jobdesc.languages.jdl_elements import IMPOSSIBLE, OMITTED, TOLD


def test_each_attribute_has_one_fate() -> None:
    assert not HANDLERS.keys() & (OMITTED.keys() | IMPOSSIBLE.keys())
    assert not OMITTED.keys() & IMPOSSIBLE.keys()
    assert {each.lower() for each in ELEMENTS} >= {*HANDLERS, *OMITTED, *IMPOSSIBLE, *map(str.lower, TOLD)}
