"""Every document that is valid by the schemas of JSDL is read: each of its elements is in the loss report, and nothing fails."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.languages.jsdl import schemas
from wms.jobdesc.languages.jsdl import looks_like_jsdl, read_jsdl
from wms.jobdesc.problem import InvalidDescription

PLACE = schemas.folder()
pytestmark = pytest.mark.skipif(PLACE is None, reason="WMS_SCHEMAS names no folder with the schemas of JSDL")


@pytest.fixture(scope="module")
def published() -> schemas.Schemas:
    assert PLACE is not None
    return schemas.Schemas(PLACE)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_valid_documents_are_read(published: schemas.Schemas, data: st.DataObject) -> None:
    document = published.document(data.draw)
    assert published.is_valid(document)
    assert looks_like_jsdl(document)
    found = read_jsdl(document)
    assert found.descriptions or found.problems
    if found.problems or found.report.losses:
        with pytest.raises(InvalidDescription):
            found.jobs()
    else:
        assert found.jobs()
