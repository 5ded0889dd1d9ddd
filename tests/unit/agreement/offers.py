"""Offers for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from wms.agreement.terms import AgreementTerms
from wms.ids import AgreementId, JobId

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def terms(**changed: Any) -> AgreementTerms:
    offer: dict[str, Any] = {
        "agreement_id": AgreementId("a-1"),
        "job_id": JobId(1),
        "vo": "lhcb",
        "owner": "alice",
        "group": "lhcb_user",
        "site": "glasgow",
        "ce": "ce01",
        "cpus": 2,
        "duration_seconds": 600.0,
    }
    return AgreementTerms(**(offer | changed))
