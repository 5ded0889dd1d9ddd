"""One word for one thing: no public class name is defined twice in the library and the services."""

from tests.figures import TWICE, defined_twice, modules


def test_no_public_class_name_is_defined_twice() -> None:
    twice = defined_twice(modules())
    assert {name: places for name, places in twice.items() if name not in TWICE} == {}
    assert twice.keys() == TWICE.keys()  # what is mended leaves the list
