"""The elements of JSDL."""

from wms.jobdesc.languages.jsdl import application, resources, staging
from wms.jobdesc.languages.jsdl.elements import ELEMENTS, IMPOSSIBLE, OMITTED


def test_every_element_that_is_read_is_told() -> None:
    assert {*application.PARTS, *application.LEFT_OUT, *resources.PARTS, *staging.PARTS} <= ELEMENTS.keys()


def test_what_is_not_carried_out_has_a_reason() -> None:
    assert not OMITTED.keys() & IMPOSSIBLE.keys()
    assert all(ELEMENTS[name].sentence for name in (*OMITTED, *IMPOSSIBLE))
