"""The computing element of the reference."""

import pytest

from tests.unit.classad.references import read
from wms.classad.ad import Ad


@pytest.fixture
def ce() -> Ad:
    ad = Ad.parse(read("egee-ce.ad")).inner("info")
    assert ad is not None
    return ad
