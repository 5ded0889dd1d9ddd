"""Which address has most is known after any additions and removals."""

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.address_shares import AddressShares

Change = tuple[bool, str, int]
changes = st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 5)), max_size=60)


@given(changes)
def test_the_address_with_most_comes_first_and_its_oldest_member(done: list[Change]) -> None:
    shares = AddressShares[int]()
    model: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    for adds, address, member in done:
        mine = model[address]
        if adds and member not in mine:
            shares.add(address, member)
            mine.append(member)
        elif not adds:
            assert shares.remove(address, member) == (member in mine)
            model[address] = [each for each in mine if each != member]
    assert {address: shares.count(address) for address in model} == {a: len(m) for a, m in model.items()}
    found = list(shares.from_most())
    assert sorted(found) == sorted(member for members in model.values() for member in members)
    most = max(len(members) for members in model.values())
    if most:
        assert found[:most] in [members for members in model.values() if len(members) == most]
