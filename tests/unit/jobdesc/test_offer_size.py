"""How large the offer of a job is: what can be submitted can be offered to a pilot."""

import msgspec
import pytest

from wms.jobdesc.array import expand, without_lists
from wms.jobdesc.description import JobDescription
from wms.jobdesc.offer_size import OFFER_LIMIT, large_offers


def sizes(description: JobDescription) -> bool:
    return bool(list(large_offers(description)))


def with_arguments(size: int) -> JobDescription:
    one = len(msgspec.json.encode(without_lists(JobDescription(executable="x", arguments=("a",)))))
    return JobDescription(executable="x", arguments=("a" * (size - one + 1),))


@pytest.mark.parametrize(("size", "large"), [(OFFER_LIMIT, False), (OFFER_LIMIT + 1, True)])
def test_the_bound_is_on_the_bytes_of_the_description(size: int, *, large: bool) -> None:
    assert sizes(with_arguments(size)) == large


def test_of_a_sweep_the_largest_job_counts_and_not_all_of_them() -> None:
    values = tuple("v" * 1_000 for _ in range(2_000))
    many = JobDescription(executable="x", arguments=("{p}",), parameters={"p": values})
    assert not sizes(many)
    one_is_large = JobDescription(executable="x", parameters={"p": ("a", "v" * OFFER_LIMIT, "b")})
    assert sizes(one_is_large)


def test_characters_count_by_their_bytes() -> None:
    values: dict[str, tuple[str, ...]] = {"p": ("é" * (OFFER_LIMIT // 2), "a" * 10)}
    assert sizes(JobDescription(executable="x", parameters=values))


def test_a_finding_names_the_size_and_a_remedy() -> None:
    ((place, message, remedy),) = large_offers(with_arguments(OFFER_LIMIT + 5))
    assert place == ""
    assert f"{OFFER_LIMIT + 5:,} bytes" in message
    assert "input sandbox" in remedy


def test_what_is_not_large_as_a_whole_is_not_large_as_an_offer() -> None:
    description = JobDescription(executable="x", arguments=("{p}",), parameters={"p": ("a", "bc")})
    for index, own in enumerate(("a", "bc")):
        offered = expand(description, index, {"p": own})
        assert len(msgspec.json.encode(offered)) <= len(msgspec.json.encode(without_lists(description))) + 10
    assert not sizes(description)
