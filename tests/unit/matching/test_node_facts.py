"""The attributes of nodes, as plans read them."""

from wms.matching.node_facts import for_plans


def test_similar_nodes_have_equal_attributes_in_plans() -> None:
    one = (
        ("freedisk", 70_000),
        ("gluehostmainmemoryramsize", 64_213),
        ("gluehostprocessorclockspeed", 2_400.5),
        ("gpunumber", 2),
    )
    other = (("gluehostmainmemoryramsize", 64_890), ("gpunumber", 2))
    assert for_plans(one) == for_plans(other) == (("gluehostmainmemoryramsize", 64_000), ("gpunumber", 2))
    assert for_plans((("gpunumber", 0),)) != for_plans((("gpunumber", 2),))
