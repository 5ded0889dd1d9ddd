"""The policy as a matrix, action by relation, and its columns for queries as the same thing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from wms.auth.policy import (
    ACTIONS,
    ON_JOBS,
    Action,
    allowed,
    may_advertise,
    no_such_job,
    refusal,
    scope,
)
from wms.auth.principal import Principal, PrincipalKind, Right

OWN = ("alice", "higgs", "atlas")
JOBS = {
    "own": OWN,
    "own, other group": ("alice", "top", "atlas"),
    "same group": ("bob", "higgs", "atlas"),
    "same VO": ("bob", "top", "atlas"),
    "same names, other VO": ("alice", "higgs", "cms"),
    "stranger": ("carol", "muon", "cms"),
}


def principal(
    *rights: str, kind: PrincipalKind = "user", site: str | None = None, shares_jobs: bool = False
) -> Principal:
    owner, group, vo = OWN
    return Principal(
        kind=kind,
        owner=owner,
        group=group,
        vo=vo,
        rights=frozenset(rights),
        site=site,
        shares_jobs=shares_jobs,
        token_id="t",
        expires_at=0,
    )


ALL = set[str](ON_JOBS) | {"submit"}
SEE = {"see"}
JOB = set[str](ON_JOBS)
NO: set[str] = set()

# Who: what they may do with the jobs of each relation, in the order of JOBS.
MATRIX: list[tuple[Principal, list[set[str]]]] = [
    (principal(), [ALL, NO, NO, NO, NO, NO]),
    (principal("job_sharing"), [ALL, NO, NO, NO, NO, NO]),
    (principal("unheard_of"), [ALL, NO, NO, NO, NO, NO]),
    (principal(shares_jobs=True), [ALL, NO, JOB, NO, NO, NO]),
    (principal(Right.JOB_MONITOR), [ALL, SEE, SEE, SEE, NO, NO]),
    (principal(Right.JOB_MONITOR, shares_jobs=True), [ALL, SEE, JOB, SEE, NO, NO]),
    (principal(Right.JOB_ADMINISTRATOR), [ALL, JOB, JOB, JOB, NO, NO]),
    (principal(Right.OPERATOR), [ALL, JOB, JOB, JOB, JOB, JOB]),
    (principal(Right.GENERIC_PILOT), [ALL, NO, NO, NO, NO, NO]),
    (principal(kind="service"), [NO, NO, NO, NO, NO, NO]),
    (principal(Right.JOB_MONITOR, kind="service"), [SEE, SEE, SEE, SEE, NO, NO]),
    (principal(Right.OPERATOR, kind="service"), [JOB] * 6),
    (principal(Right.OPERATOR, Right.GENERIC_PILOT, kind="pilot"), [NO] * 6),
    (principal(Right.OPERATOR, kind="site"), [NO] * 6),
    (principal(Right.OPERATOR, kind="payload"), [NO] * 6),
]
CELLS = [
    pytest.param(
        who,
        action,
        relation,
        action in may[i],
        id=f"{who.kind}-{'+'.join(sorted(who.rights))}-{action}-{relation}",
    )
    for who, may in MATRIX
    for i, relation in enumerate(JOBS)
    for action in sorted(ALL)
]


@pytest.mark.parametrize(("who", "action", "relation", "may"), CELLS)
def test_matrix(who: Principal, action: Action, relation: str, may: bool) -> None:  # noqa: FBT001
    assert allowed(who, action, *JOBS[relation]) is may


def test_only_operators_administer() -> None:
    for who, _ in MATRIX:
        is_operator = Right.OPERATOR in who.rights and who.kind in ("user", "service")
        assert allowed(who, "administer", "", "", "") is is_operator


def test_shares_are_set_by_a_vos_administrators_and_by_operators() -> None:
    administrator = principal(Right.JOB_ADMINISTRATOR)
    assert allowed(administrator, "set_shares", "", "top", "atlas")
    assert not allowed(administrator, "set_shares", "", "top", "cms")
    assert allowed(principal(Right.OPERATOR), "set_shares", "", "top", "cms")
    assert not allowed(principal(Right.JOB_MONITOR, shares_jobs=True), "set_shares", "", "higgs", "atlas")


NAMES = st.sampled_from(["alice", "bob", "higgs", "top", "atlas", "cms"])
PEOPLE = st.builds(
    Principal,
    kind=st.sampled_from(["user", "service", "pilot", "site", "payload"]),
    owner=NAMES,
    group=NAMES,
    vo=NAMES,
    rights=st.frozensets(st.sampled_from([*Right, "other"])),
    shares_jobs=st.booleans(),
    token_id=st.just("t"),
    expires_at=st.just(0.0),
)


@settings(deadline=None)
@given(PEOPLE, st.sampled_from(ACTIONS), NAMES, NAMES, NAMES)
def test_the_columns_of_a_scope_mean_what_the_policy_says(
    who: Principal, action: Action, owner: str, group: str, vo: str
) -> None:
    reach = scope(who, action)
    pairs = ((reach.owner, owner), (reach.group, group), (reach.vo, vo))
    by_columns = all(wanted is None or wanted == value for wanted, value in pairs)
    assert allowed(who, action, owner, group, vo) is by_columns


@settings(deadline=None)
@given(PEOPLE, NAMES, NAMES, NAMES)
def test_who_may_act_may_see(who: Principal, owner: str, group: str, vo: str) -> None:
    if any(allowed(who, action, owner, group, vo) for action in ON_JOBS):
        assert allowed(who, "see", owner, group, vo)


@settings(deadline=None)
@given(PEOPLE, NAMES, NAMES, NAMES)
def test_nobody_crosses_vos_but_operators(who: Principal, owner: str, group: str, vo: str) -> None:
    if vo != who.vo and Right.OPERATOR not in who.rights:
        assert not any(allowed(who, action, owner, group, vo) for action in ACTIONS)


@settings(deadline=None)
@given(PEOPLE, NAMES, NAMES, NAMES)
def test_nobody_submits_for_another(who: Principal, owner: str, group: str, vo: str) -> None:
    if allowed(who, "submit", owner, group, vo):
        assert who.kind == "user"
        assert (who.owner, who.group, who.vo) == (owner, group, vo)


def test_a_site_speaks_for_itself() -> None:
    assert may_advertise(principal(kind="site", site="CERN"), "CERN")
    assert may_advertise(principal(kind="site", site="*"), "CERN")
    assert not may_advertise(principal(kind="site", site="RAL"), "CERN")
    assert not may_advertise(principal(kind="site"), "CERN")
    assert not may_advertise(principal(kind="user", site="CERN"), "CERN")


def test_a_token_may_speak_for_the_sites_of_an_index() -> None:
    nordic = replace(principal(kind="site"), sites=frozenset({"*.nordic.org", "umea"}))
    fits = {
        site: may_advertise(nordic, site)
        for site in ("a.nordic.org", "umea", "umea2", "nordic.org.evil", "CERN")
    }
    assert fits == {
        "a.nordic.org": True,
        "umea": True,
        "umea2": False,
        "nordic.org.evil": False,
        "CERN": False,
    }
    assert not may_advertise(replace(nordic, kind="user"), "umea")


def test_a_foreign_id_is_answered_as_one_that_never_was() -> None:
    foreign = refusal(principal(), "kill", "bob", "higgs", "atlas", job_id=7)
    assert (foreign.code, str(foreign)) == ("NO_SUCH_JOB", str(no_such_job(7)))
    seen = refusal(principal(Right.JOB_MONITOR), "fetch_output", "bob", "higgs", "atlas", job_id=7)
    assert (seen.code, seen.message) == (
        "NOT_ALLOWED",
        "job 7 is another's: you have no right to fetch output",
    )
