"""Sites' requirements and ranks over many queues: each is evaluated once for jobs that tell the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks
from tests.unit.matching.test_ads import RANKS, SITES
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import number, satisfied
from wms.matching.ads import JobAttributes, advertised, job_ad, job_attributes
from wms.queue_index.effort import Effort
from wms.queue_index.site_expressions import SiteExpressions


def bound(text: str, own: Ad) -> Expression:
    return own.bind(Expression.parse(text))


jobs = st.builds(
    lambda **fields: job_attributes(asks(**fields)),
    owner=st.sampled_from("op"),
    min_ram_mb=st.sampled_from([0, 600]),
    tags=st.sampled_from([(), ("gpu",)]),
    attributes=st.sampled_from(["", "[own = 1]", "[own = 2; a = 3]"]),
)


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(jobs, min_size=1, max_size=8),
    later=st.lists(jobs, max_size=8),
    requirements=st.sampled_from([each for each in SITES if each]),
    rank=st.sampled_from([each for each in RANKS if each]),
)
def test_what_is_said_of_many_jobs_is_said_of_each_alone(
    first: list[JobAttributes], later: list[JobAttributes], requirements: str, rank: str
) -> None:
    own = Ad.parse(advertised({"a": 2, "c": 1, "maxram": 2_000}, {}, "", ""))
    parts: list[Any] = []
    said = SiteExpressions(parts)
    for more in (first, later):
        start = len(parts)
        parts += more
        taken = said.verdicts(bound(requirements, own), own, start).tolist()
        assert taken == [satisfied(bound(requirements, own), job_ad(each), own) for each in parts[start:]]
        ranks = said.ranks(bound(rank, own), own).tolist()
        assert ranks == [number(bound(rank, own), job_ad(each), own) for each in parts]


def test_jobs_that_tell_the_same_to_who_looks_are_one() -> None:
    parts: list[Any] = [
        job_attributes(asks(owner=f"o{n % 2}", attributes=f"[own = {n}]")) for n in range(100)
    ]
    said = SiteExpressions(parts)
    for _ in range(3):
        found = said.verdicts(Expression.parse('other.Owner == "o1"'), Ad(()), 0)
    assert found.tolist() == [False, True] * 50
    assert said.evaluated == 2
    parts.append(job_attributes(asks(owner="o2")))
    said.verdicts(Expression.parse('other.Owner == "o1"'), Ad(()), 100)
    assert said.evaluated == 3


def test_an_expression_as_requirements_and_as_rank_are_two() -> None:
    parts: list[Any] = [job_attributes(asks(attributes="[own = 3]"))]
    said = SiteExpressions(parts)
    text = Expression.parse("other.own")
    assert said.verdicts(text, Ad(()), 0).tolist() == [False], "a number is not true"
    assert said.ranks(text, Ad(())).tolist() == [3.0]


def test_what_is_kept_is_bounded_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wms.queue_index.site_expressions.KEPT", 3)
    monkeypatch.setattr("wms.queue_index.site_expressions.KEPT_NAMES", 2)
    parts: list[Any] = [job_attributes(asks(attributes=f"[n{n} = {n}]")) for n in range(10)]
    said = SiteExpressions(parts)
    for n in [*range(10), 0, 5]:
        found = said.verdicts(Expression.parse(f"other.n{n} == {n}"), Ad(()), 0).tolist()
        assert found == [each == n for each in range(10)]


@pytest.mark.parametrize("is_rank", [False, True])
def test_what_is_evaluated_at_once_is_bounded_and_later_calls_go_on(*, is_rank: bool) -> None:
    parts: list[Any] = [job_attributes(asks(owner=f"o{n}")) for n in range(50)]
    effort = Effort()
    said = SiteExpressions(parts, effort)
    text = Expression.parse(f'regexp(".*.*[xy]", strcat("{"a" * 600}", other.Owner, "x"))')
    for call in range(20):
        effort.renew(2_000_000)
        found = said.ranks(text, Ad(())) if is_rank else said.verdicts(text, Ad(()), 0)
        assert said.evaluated <= 6 * (call + 1)
        left = 0 if said.undecided is None else said.undecided.sum()
        assert left == 50 - found.sum() == 50 - said.evaluated, "none is taken as refused"
        if not left:
            break
    assert found.all()
