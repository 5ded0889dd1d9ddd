"""Jobs' requirements over many queues: each verdict is the library's, and a conjunct is evaluated once for what it sees."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, offers
from tests.unit.matching.test_ads import JOBS, OPEN, canonical
from wms.matching.ads import advertised
from wms.matching.grouping import Requirements
from wms.matching.two_sided import asked, job_wants
from wms.queue_index.effort import Effort
from wms.queue_index.job_expressions import JobExpressions
from wms.queue_index.significant_attributes import AdClass, SignificantAttributes
from wms.site import Resource, with_ad


class Faced:
    """Queues' requirements, and the classes of the ads that they are held against."""

    def __init__(self) -> None:
        self.effort = Effort()
        self.expressions = JobExpressions(self.effort)
        self.ad_classes = SignificantAttributes()

    def append(self, wanted: Requirements) -> None:
        self.ad_classes.look(self.expressions.append(asked(wanted)))

    def verdicts(self, resource: Resource, start: int = 0) -> list[bool]:
        ad_class = self.ad_classes.of(resource)
        assert isinstance(ad_class, AdClass)
        return list(map(bool, self.expressions.verdicts(ad_class, start)))


def there(*, forwards: tuple[str, ...] | None = None, looks_back: str = "", **said: Any) -> Resource:
    expressions = {"open": looks_back} if looks_back else {}
    return with_ad(offers(site="A", memory_mb=1_500), advertised(said, expressions, "", ""), forwards)


queues = st.builds(
    lambda text, own, owner: asks(requirements=canonical(text), attributes=own, owner=owner),
    st.sampled_from(JOBS),
    st.sampled_from(["", "[own = 1]", "[own = 2]"]),
    st.sampled_from("op"),
)
places = st.builds(
    lambda a, b, looks_back, forwards: there(a=a, b=b, looks_back=looks_back, forwards=forwards),
    st.sampled_from([0, 1, 2.5]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["", *OPEN]),
    st.sampled_from([None, (), ("a",), ("c", "a")]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(queues, min_size=1, max_size=10), st.lists(places, min_size=1, max_size=4), st.integers(0, 9))
def test_verdicts_are_those_of_each_job_alone(
    wanted: list[Requirements], at: list[Resource], start: int
) -> None:
    faced = Faced()
    for each in wanted:
        faced.append(each)
    start = min(start, len(wanted) - 1)
    for resource in at:
        expected = [job_wants(asked(each), resource) for each in wanted]
        assert faced.verdicts(resource) == expected
        assert faced.verdicts(resource, start) == expected[start:]


def test_a_conjunct_of_many_queues_is_evaluated_once_for_each_ad_that_differs_to_it() -> None:
    faced = Faced()
    for n in range(50):
        faced.append(asks(requirements=canonical(f"other.a > 1 && other.b == {n % 5}")))
    for n in range(20):
        faced.verdicts(there(a=n % 2, b=7, elsewhere=n))
    assert faced.expressions.evaluated == 2 + 5, "two values of a, and one of b over five conjuncts"


def test_names_that_an_ad_has_not_are_evaluated_once_for_all_ads() -> None:
    faced = Faced()
    for n in range(10):
        faced.append(asks(requirements=canonical(f"other.nobody{n} > 1 || other.missing{n} =?= undefined")))
    assert [faced.verdicts(there(a=n)) for n in range(5)] == [[True] * 10] * 5
    assert faced.expressions.evaluated == 0


DEAR = 'regexp(".*.*[xy]", strcat("{}{}", other.b))'
"""A conjunct of half a million steps."""


def dear(n: int) -> Requirements:
    return asks(requirements=canonical(DEAR.format("a" * 640, f"{n:03}")))


def test_what_is_evaluated_at_once_is_bounded_and_later_calls_go_on() -> None:
    faced = Faced()
    for n in range(20):
        faced.append(dear(n))
    known = []
    for _ in range(10):
        faced.effort.renew(700_000)
        before = faced.expressions.evaluated
        verdicts = faced.verdicts(there(b="x"))
        known.append(sum(verdicts))
        assert faced.expressions.evaluated - before <= 3
        undecided = faced.expressions.undecided
        assert (0 if undecided is None else undecided.sum()) == 20 - sum(verdicts), "none is taken as refused"
        if undecided is None:
            break
    assert known[-1] == 20
    assert known == sorted(known)


def test_dear_requirements_leave_the_effort_to_cheap_ones_that_came_after_them() -> None:
    faced = Faced()
    for n in range(20):
        faced.append(dear(n))
    for n in range(100):
        faced.append(asks(requirements=canonical(f'other.b == "x" && other.a != {n}')))
    faced.effort.renew(300_000)
    assert faced.verdicts(there(a=0.5, b="x"))[20:] == [True] * 100


def test_requirements_that_one_conjunct_refuses_are_decided_whatever_their_others_take() -> None:
    faced = Faced()
    faced.append(asks(requirements=canonical(f"{DEAR.format('a' * 640, 'b')} && other.a == 1")))
    faced.append(dear(0))
    faced.effort.renew(1)
    assert faced.verdicts(there(a=2, b="x")) == [False, False]
    assert faced.expressions.undecided is not None
    assert faced.expressions.undecided.tolist() == [False, True]


def test_many_that_read_what_changes_each_time_leave_room_for_a_new_one() -> None:
    faced = Faced()
    for n in range(300):
        faced.append(asks(requirements=canonical(f"other.a == {n}")))
    for n in range(20):
        faced.effort.renew(100_000)
        faced.verdicts(there(a=1_000 + n, b="x"))
    faced.append(
        asks(requirements=canonical('other.b == "x" && other.b != "a long one that takes more steps"'))
    )
    faced.append(asks())
    faced.effort.renew(100_000)
    assert faced.verdicts(there(a=2_000, b="x"))[300:] == [True, True]


def test_requests_for_which_no_effort_is_left_are_not_even_looked_at() -> None:
    faced = Faced()
    faced.append(asks(requirements=canonical("other.a == 1")))
    faced.append(asks())
    faced.effort.renew(0)
    assert faced.verdicts(there(a=1)) == [False, True]
    assert faced.expressions.undecided is not None
    assert faced.expressions.undecided.tolist() == [True, False]
    assert not faced.expressions.evaluated
