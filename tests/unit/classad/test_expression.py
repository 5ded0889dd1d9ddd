"""Expressions: their canonical text, and what they look at."""

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import satisfied, satisfied_by


def test_texts_that_mean_the_same_have_one_canonical_text() -> None:
    texts = (
        'other.Cpus>=2&&(TARGET.OS=="Linux"&&!(isundefined(MY.x)))',
        '((other.CPUS >= 2) && target.os == "Linux") /* so */ && ! IsUndefined( self.X )',
        "other.cpus >= 2 // why\n && other.os == \"Linux\" && !ISUNDEFINED(my.'x')",
    )
    assert {Expression.parse(text).text for text in texts} == {
        'other.cpus >= 2 && other.os == "Linux" && !isundefined(my.x)'
    }
    assert len({Expression.parse(text) for text in texts}) == 1
    assert Expression.parse('x == "a"') != Expression.parse('x == "A"')


def test_an_expression_says_what_it_looks_at_and_an_ad_what_is_seen_of_it() -> None:
    job = Ad.parse("[Size = 3; Requirements = other.Memory > Size && Status == 1]")
    assert job.requirements is not None
    assert job.requirements.other == {"memory", "status"}
    one, two, three = (
        Ad.parse(f"[Memory = {memory}; Status = 1; Load = {load}]")
        for memory, load in ((5, 1), (5, 2), (2, 1))
    )
    view = job.requirements.other
    assert one.view(view) == two.view(view) != three.view(view)
    assert satisfied_by(job.requirements, [one, two, three], job) == [True, True, False]
    assert [satisfied(job.requirements, each, job) for each in (one, two, three)] == [True, True, False]
