"""What an element's ad leaves of a job's requirements about its hosts is what it was, and its bounds keep no good host away."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.classad.ad import Ad, Given
from wms.classad.expression import Expression
from wms.classad.folding import truth
from wms.classad.match import evaluate, satisfied
from wms.classad.reduce import left_by, sketch
from wms.provisioning.host_requirements import (
    HostRequirements,
    HostTerm,
    host_requirements_of,
    tightest,
)

DATA = Path(__file__).parents[2] / "data" / "classad"
SI00, LIMIT = "GlueHostBenchmarkSI00", "GlueCEPolicyMaxCPUTime"


@cache
def nested() -> Expression:
    """Return the requirements of the reference's example, of which it says that it is not trivial."""
    text = (DATA / "egee-requirements.txt").read_text().replace("\n", " ")
    found = Ad.parse(text).expression("Requirements")
    assert found is not None
    return found


@cache
def published() -> Ad:
    """Return the reference's ad of an element."""
    inner = Ad.parse((DATA / "egee-ce.ad").read_text()).inner("info")
    assert inner is not None
    return inner


def element(**changed: int) -> Ad:
    """Return the reference's ad of an element, with some attributes changed."""
    said: dict[str, Given] = {
        name: each for name in published().names if (each := published().expression(name)) is not None
    }
    return Ad.of({**said, **changed})


def left(text: str, ad: str = "[]", *forwarded: str, own: str = "[]") -> HostRequirements:
    wanted = Expression.parse(text)
    known = sketch(Ad.parse(ad), forwarded or wanted.other)
    return host_requirements_of(wanted, known, Ad.parse(own))


def bounds(text: str) -> list[str]:
    return [str(each) for each in left(text).bounds]


# --- the reference's example ------------------------------------------------------------------------------------------


def test_the_references_element_decides_the_policy_and_the_host_is_forwarded() -> None:
    found = host_requirements_of(nested(), sketch(element(**{LIMIT: 1500}), {SI00}))
    assert found.left == "other.gluehostbenchmarksi00 > 500"
    assert found.bounds == (HostTerm("gluehostbenchmarksi00", ">", 500),)
    assert not found.unasked


def test_the_references_hosts_decide_the_branch_and_the_policy_is_forwarded() -> None:
    slow = host_requirements_of(nested(), sketch(element(), {LIMIT}))
    assert slow.bounds == (HostTerm("gluecepolicymaxcputime", ">", 2000),)
    fast = host_requirements_of(nested(), sketch(element(**{SI00: 501}), {LIMIT}))
    assert fast.bounds == (HostTerm("gluecepolicymaxcputime", ">", 1000),)


def test_where_both_are_forwarded_what_both_branches_ask_is_asked_and_the_rest_is_told() -> None:
    found = host_requirements_of(nested(), sketch(element(), {SI00, LIMIT}))
    assert found.bounds == (HostTerm("gluecepolicymaxcputime", ">", 1000),)
    assert [each.reason for each in found.unasked] == ["which of two things is asked depends on the host"]


def test_where_the_element_decides_all_nothing_is_left() -> None:
    assert host_requirements_of(nested(), sketch(element(), ())) == HostRequirements("true", possible=True)
    assert host_requirements_of(nested(), sketch(element(**{LIMIT: 900}), ())).possible is False


def test_an_element_where_no_host_will_do_is_told() -> None:
    assert host_requirements_of(nested(), sketch(element(**{LIMIT: 900}), {SI00})).possible is False


@settings(deadline=None)
@given(
    limit=st.integers(0, 3000),
    si00=st.integers(0, 1000),
    forwarded=st.sets(st.sampled_from([SI00, LIMIT])),
)
def test_a_host_with_what_was_forwarded_satisfies_what_is_left_exactly_when_the_whole_is_satisfied(
    limit: int, si00: int, forwarded: set[str]
) -> None:
    values = {SI00: si00, LIMIT: limit}
    # What the element says of itself of these need not be true of this host.
    said = element(**{name: value for name, value in values.items() if name not in forwarded})
    host = Ad.of({name: values[name] for name in forwarded})
    over_host = satisfied(left_by(nested(), sketch(said, forwarded)), host)
    assert over_host is satisfied(nested(), element(**values))


# --- any requirements -------------------------------------------------------------------------------------------------

HOST = ("Mem", "Cpus", "Arch", "Soft", "Flag")
POLICY = ("Wall", "Queue")
numbers = st.integers(-3, 3)
words = st.sampled_from(["a", "B", "c"])


@st.composite
def terms(draw: st.DrawFn) -> str:
    """Return a term on one attribute, in one of its spellings."""
    name = draw(st.sampled_from([*HOST, *POLICY]))
    if name == "Soft":
        return f'member("{draw(words)}", other.Soft)'
    if name == "Flag":
        return draw(st.sampled_from(["other.Flag", "!other.Flag", "other.Flag == true"]))
    value = f'"{draw(words)}"' if name in ("Arch", "Queue") else str(draw(numbers))
    relations = (
        ["==", "!=", "=?="] if name in ("Arch", "Queue") else ["==", "!=", "<", "<=", ">", ">=", "=!="]
    )
    sides = [f"other.{name}", draw(st.sampled_from(relations)), value]
    return "(" + " ".join(sides if draw(st.booleans()) else [sides[2], sides[1], sides[0]]) + ")"


def _more(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda each: f"({' && '.join(each)})"),
        several.map(lambda each: f"({' || '.join(each)})"),
        parts.map(lambda each: f"!({each})"),
        st.tuples(parts, parts, parts).map(lambda each: f"(({each[0]}) ? ({each[1]}) : ({each[2]}))"),
        st.tuples(parts, parts).map(lambda each: f"(({each[0]}) ?: ({each[1]}))"),
        st.tuples(parts, parts, st.sampled_from(["true", "false", "undefined"])).map(
            lambda each: f"(({each[0]}) ? {each[2]} : ({each[1]}))"
        ),
    )


expressions = st.recursive(terms(), _more, max_leaves=6)
values = {
    "Mem": numbers,
    "Cpus": numbers,
    "Wall": numbers,
    "Arch": words,
    "Queue": words,
    "Soft": st.lists(words, max_size=3),
    "Flag": st.booleans(),
}


def ads(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, object]]:
    """Return what ads say, seldom nothing of an attribute."""
    some = st.fixed_dictionaries({name: values[name] for name in names})
    return st.tuples(some, st.sampled_from(("", "", "", *names))).map(
        lambda each: {name: value for name, value in each[0].items() if name != each[1]}
    )


@settings(deadline=None)
@given(text=expressions, policy=ads(POLICY), summary=ads(HOST), host=ads(HOST))
def test_what_is_left_over_a_host_is_the_whole_over_element_and_host(text, policy, summary, host) -> None:
    wanted = Expression.parse(text)
    found = left_by(wanted, sketch(Ad.of(summary | policy), HOST))
    assert satisfied(found, Ad.of(host)) is satisfied(wanted, Ad.of(policy | host))


@settings(deadline=None)
@given(
    text=expressions, policy=st.fixed_dictionaries({name: values[name] for name in POLICY}), host=ads(HOST)
)
def test_bounds_are_true_of_every_good_host_and_of_no_other_if_nothing_is_told_besides(
    text, policy, host
) -> None:
    wanted = Expression.parse(text)
    found = host_requirements_of(wanted, sketch(Ad.of(policy), HOST))
    good = satisfied(wanted, Ad.of(policy | host))
    met = [_met(bound, Ad.of(host)) for bound in found.bounds]
    if good:
        assert found.possible
        assert all(met), found
    elif found.possible and not found.unasked:
        assert not all(met), found


def _met(bound: HostTerm, host: Ad) -> bool:
    name = f"other.{bound.attribute}"
    if isinstance(bound.value, bool):
        return truth(evaluate(Expression.parse(name), host)) is bound.value
    value = f'"{bound.value}"' if isinstance(bound.value, str) else bound.value
    said = f"member({value}, {name})" if bound.relation == "member" else f"{name} {bound.relation} {value}"
    return satisfied(Expression.parse(said), host)


# --- single terms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("other.Mem >= 200 && 300 > other.Mem && other.Mem > 100", ["mem >= 200", "mem < 300"]),
        ("other.Mem >= 500 || other.Mem > 200", ["mem > 200"]),
        ("!(other.Mem < 200)", ["mem >= 200"]),
        ("!(other.Mem < 200 || other.Cpus < 2)", ["mem >= 200", "cpus >= 2"]),
        ('Member("APP1", other.Soft)', ['soft has "APP1"']),
        ("other.Flag", ["flag == true"]),
        ("other.Mem > 5 ? other.Cpus > 1 : false", ["mem > 5", "cpus > 1"]),
        ("other.Mem > 5 ? false : other.Cpus > 1", ["mem <= 5", "cpus > 1"]),
    ],
)
def test_terms_become_bounds_wholly(text: str, said: list[str]) -> None:
    assert bounds(text) == said
    assert not left(text).unasked


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("other.Mem > 5 || other.Cpus > 1", "alternatives of cpus and mem"),
        ("other.Mem != 5", "!= says what a host is not, or reckons"),
        ('!member("a", other.Soft)', "it says what a host is not"),
        ('regexp("^a", other.Arch)', "the function regexp has no counterpart"),
        ("size(other.Soft) > 2", "it compares what a function gives"),
        ("other.Mem > other.Cpus", "it compares two attributes with each other"),
        ("other.Mem * 2 > 5", "it compares what is reckoned"),
        ('other.Arch =?= "a"', "a batch system does not compare so strictly"),
    ],
)
def test_what_no_bound_says_is_told_with_its_reason(text: str, reason: str) -> None:
    assert [each.reason for each in left(text).unasked] == [reason]


def test_what_the_job_says_of_itself_is_put_in() -> None:
    found = left("other.Mem >= MY.Image * 2", own="[Image = 100]")
    assert found.bounds == (HostTerm("mem", ">=", 200),)


def test_what_an_element_reckons_from_what_is_forwarded_is_forwarded_with_it() -> None:
    found = left("other.PerCore > 5 && other.Wall > 1", "[Mem = 8; PerCore = Mem / 2; Wall = 2]", "Mem")
    assert found.bounds == (HostTerm("percore", ">", 5),)


def test_a_number_and_a_truth_are_two_bounds() -> None:
    assert len(tightest([HostTerm("a", "==", 1), HostTerm("a", "==", True)])) == 2
