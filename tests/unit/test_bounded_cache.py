"""A bounded cache: what it keeps, what it drops, and that reading it costs what reading a dict costs."""

from hypothesis import given
from hypothesis import strategies as st

from wms.bounded_cache import BoundedCache


@given(st.integers(1, 20), st.lists(st.integers(0, 40)))
def test_it_keeps_what_was_set_last_and_never_more_than_its_bound(most: int, keys: list[int]) -> None:
    cache = BoundedCache[int, int](most)
    for number, key in enumerate(keys):
        cache[key] = number
        assert len(cache) <= most
    newest_first = list(dict.fromkeys(reversed(keys)))
    assert list(reversed(cache)) == newest_first[: len(cache)]
    assert all(keys[number] == key for key, number in cache.items())


@given(st.integers(4, 100))
def test_a_full_one_drops_a_quarter_and_no_more(most: int) -> None:
    cache = BoundedCache[int, None](most)
    for key in range(most + 1):
        cache[key] = None
    assert len(cache) == most - most // 4
    assert min(cache) == most // 4 + 1


def test_setting_again_makes_an_entry_the_newest_and_reading_does_not() -> None:
    cache = BoundedCache[str, int](3)
    cache["read"] = cache["set"] = cache["other"] = 1
    assert cache.get("read") == 1
    cache["set"] = 2
    cache["new"] = 3
    assert dict(cache) == {"other": 1, "set": 2, "new": 3}


def test_reading_is_the_dict_itself() -> None:
    own = vars(BoundedCache)
    assert not {"get", "__getitem__", "__contains__", "__missing__", "__getattribute__"} & own.keys()
    assert not hasattr(BoundedCache[str, str](1), "__dict__")
