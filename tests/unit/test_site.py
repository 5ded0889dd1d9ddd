"""Descriptions of resources, as pilots send them."""

from wms.site import Resource


def test_what_a_node_says_of_itself_is_safe_to_read() -> None:
    node = (("cpu", "Evil\x1b[31m\u202e CPU"), ("gpus", 2), ("names", ("a", "b")))
    found = dict(Resource(setup="s", vo="v", cpu_time=60, node=node).node)
    assert str(found["cpu"]).isprintable()
    assert (found["gpus"], found["names"]) == (2, ("a", "b"))
