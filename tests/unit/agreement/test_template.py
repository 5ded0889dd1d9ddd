"""Offers that a template's bounds refuse, and why."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.agreement.offers import NOW, at, terms
from wms.agreement.reasons import AgreementReason
from wms.agreement.template import AgreementTemplate

R = AgreementReason
TEMPLATE = AgreementTemplate(
    max_cpus=16, min_seconds=60, max_seconds=3_600, horizon_seconds=86_400, vos=("lhcb",)
)


def test_an_offer_within_the_bounds_is_not_refused() -> None:
    assert TEMPLATE.refusal(terms(), 8, NOW) is None


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"vo": "atlas"}, R.VO_REFUSED),
        ({"cpus": 9}, R.TOO_MANY_CPUS),
        ({"cpus": 17}, R.TOO_MANY_CPUS),
        ({"duration_seconds": 59.0}, R.TOO_LONG),
        ({"duration_seconds": 3_601.0}, R.TOO_LONG),
        ({"earliest_start": at(100), "latest_start": at(99)}, R.WINDOW_REVERSED),
        ({"latest_start": at(-1)}, R.WINDOW_OVER),
        ({"earliest_start": at(86_401)}, R.BEYOND_HORIZON),
        ({"earliest_start": datetime(2999, 12, 31, tzinfo=UTC)}, R.BEYOND_HORIZON),
        ({"latest_start": datetime(1970, 1, 1, tzinfo=UTC)}, R.WINDOW_OVER),
    ],
)
def test_an_offer_beyond_a_bound_is_refused(changed: dict[str, Any], code: AgreementReason) -> None:
    refusal = TEMPLATE.refusal(terms(**changed), 8, NOW)
    assert refusal is not None
    assert refusal.code is code
    assert refusal.text


def test_an_unconfirmed_reservation_is_held_no_longer_than_the_site_allows() -> None:
    template = AgreementTemplate(max_lifetime_seconds=30)
    assert template.lifetime(terms(expires_in_seconds=86_400.0)) == timedelta(seconds=30)
    assert template.lifetime(terms(expires_in_seconds=5.0)) == timedelta(seconds=5)
