"""What of jobs decides on the weight of their queue: the real priority and the share class."""

import pytest

from tests.unit.matching.strategies import asks
from wms.matching.shares import real_priority, share_class


@pytest.mark.parametrize(
    ("user", "real"), [(0, 1e-5), (0.0005, 0.001), (-3, 0.001), (1, 1), (9.5, 9.5), (10, 1e6), (99, 1e6)]
)
def test_real_priority(user, real):
    assert real_priority(user) == real


def test_a_class_leaves_out_only_where_it_is_seen():
    one = asks(sites=("A",), banned_sites=("B",), min_ram_mb=5, tags=("x",))
    assert share_class(one) == share_class(asks(tags=("x",)))
    assert share_class(one) != share_class(asks(tags=("y",)))
