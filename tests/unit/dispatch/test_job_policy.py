"""What a batch job shows of the policy requirements of its pilot's jobs: bounded, plain, and no secret."""

from hypothesis import given
from hypothesis import strategies as st

from wms.dispatch.job_policy import (
    COMMENT_LIMIT,
    VALUE_LIMIT,
    JobPolicy,
    attributes,
    comment,
    environment,
    of_ad,
)

POLICY = JobPolicy(
    vo="lhcb",
    owner_groups=("lhcb_user", "lhcb_prod"),
    cores=8,
    cpu_seconds=50_000,
    walltime_seconds=90_000,
    memory_mb=16_000,
    hosts='member("avx512", other.GlueHostApplicationSoftwareRunTimeEnvironment)',
)


def test_what_is_required_has_a_name_everywhere():
    assert environment(POLICY) == {
        "WMS_POLICY_VO": "lhcb",
        "WMS_POLICY_OWNER_GROUPS": "lhcb_user,lhcb_prod",
        "WMS_POLICY_CORES": "8",
        "WMS_POLICY_CPU_SECONDS": "50000",
        "WMS_POLICY_WALLTIME_SECONDS": "90000",
        "WMS_POLICY_MEMORY_MB": "16000",
        "WMS_POLICY_HOSTS": 'member("avx512", other.GlueHostApplicationSoftwareRunTimeEnvironment)',
    }
    assert comment(POLICY).startswith(
        "wms vo=lhcb; owner_groups=lhcb_user,lhcb_prod; cores=8; cpu_seconds=50000;"
    )
    assert of_ad(POLICY)["WmsPolicyOwnerGroups"] == "lhcb_user,lhcb_prod"
    assert (environment(JobPolicy()), comment(JobPolicy()), of_ad(JobPolicy())) == ({}, "", {})


@given(st.text(max_size=2_000), st.lists(st.text(max_size=100), max_size=50))
def test_whatever_jobs_say_it_is_short_and_on_one_line(text: str, groups: list[str]):
    policy = JobPolicy(vo=text, owner_groups=tuple(groups), hosts=text)
    for value in (*environment(policy).values(), comment(policy)):
        assert value.isascii()
        assert value.isprintable()
        assert not set(value) & set("'`$\\\n")
    assert all(len(value) <= VALUE_LIMIT for value in attributes(policy).values())
    assert len(comment(policy)) <= COMMENT_LIMIT
