"""The description on the wire, and its digest."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.descriptions import of
from wms.jobdesc import (
    JobDescription,
    digest,
    validate,
)


@settings(deadline=None)
@given(st.builds(of, arguments=st.lists(st.text(), max_size=3).map(tuple), priority=st.integers(0, 10)))
def test_the_description_survives_the_wire(description: JobDescription) -> None:
    if not validate(description):
        again = msgspec.json.decode(msgspec.json.encode(description), type=JobDescription)
        assert again == description
        assert digest(again) == digest(description)


def test_the_digest_does_not_depend_on_the_order_of_keys_but_on_all_else() -> None:
    assert digest(of(environment={"A": "1", "B": "2"})) == digest(of(environment={"B": "2", "A": "1"}))
    assert (
        len({digest(of()), digest(of(cpu_time=1)), digest(of(arguments=("a",))), digest(of(tags=("a",)))})
        == 4
    )
