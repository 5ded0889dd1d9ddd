"""Quotas of VOs: up to the bound, and not beyond."""

import pytest

from tests.unit.agreement.offers import terms
from wms.agreement.quota import ReservedAmount, VoQuota, over_quota, reserved
from wms.agreement.reasons import AgreementReason

HELD = reserved([(2, 600.0), (4, 100.0)])


@pytest.mark.parametrize(
    "quota", [VoQuota(), VoQuota(agreements=3), VoQuota(cpus=8), VoQuota(cpu_seconds=2_800)]
)
def test_up_to_its_quota_a_vo_may_reserve(quota: VoQuota) -> None:
    assert over_quota(terms(), HELD, quota) is None


@pytest.mark.parametrize("quota", [VoQuota(agreements=2), VoQuota(cpus=7), VoQuota(cpu_seconds=2_799)])
def test_beyond_its_quota_it_may_not(quota: VoQuota) -> None:
    refusal = over_quota(terms(), HELD, quota)
    assert refusal is not None
    assert refusal.code is AgreementReason.QUOTA


@pytest.mark.parametrize(
    ("quota", "most"),
    [
        (VoQuota(), 250),
        (VoQuota(agreements=3), 1),
        (VoQuota(owner_agreements=1), 1),
        (VoQuota(owner_agreements=0), 0),
    ],
)
def test_one_user_may_not_have_all_that_its_vo_may(quota: VoQuota, most: int) -> None:
    assert quota.most_of_owner == most
    held = ReservedAmount(most, most, 60.0 * most, {"mallory": most})
    refusal = over_quota(terms(owner="mallory"), held, quota)
    assert refusal is not None
    assert refusal.code is AgreementReason.OWNER_QUOTA
    assert "mallory of VO" in refusal.text
    assert "owner_agreements" in refusal.text


def test_what_others_of_its_vo_have_leaves_a_user_its_own() -> None:
    held = ReservedAmount(250, 250, 15_000.0, {"mallory": 250})
    assert over_quota(terms(owner="innocent"), held, VoQuota()) is None
