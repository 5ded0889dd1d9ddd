"""Quotas: how much a VO may have reserved at a site at the same time."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.terms import AgreementTerms


class VoQuota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that one VO may have reserved at one site, over its undecided, temporary and confirmed agreements."""

    agreements: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1_000
    cpus: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100_000_000
    """The most CPUs, summed over all reservations, even if these are at different times."""
    cpu_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e15)] = 1e15
    """The most CPU seconds: the sum of CPUs times duration over all reservations."""


class ReservedAmount(msgspec.Struct, frozen=True):
    """What a VO has reserved at a site: the number of its agreements, and the sums of CPUs and of CPU seconds."""

    agreements: int = 0
    cpus: int = 0
    cpu_seconds: float = 0.0

    def plus(self, cpus: int, seconds: float) -> "ReservedAmount":
        """Return the amount with one more reservation, of `cpus` CPUs for `seconds`."""
        return ReservedAmount(self.agreements + 1, self.cpus + cpus, self.cpu_seconds + cpus * seconds)


def reserved(held: Iterable[tuple[int, float]]) -> ReservedAmount:
    """Return the sum over reservations, each given as its CPUs and its duration in seconds."""
    total = ReservedAmount()
    for cpus, seconds in held:
        total = total.plus(cpus, seconds)
    return total


def over_quota(terms: AgreementTerms, held: ReservedAmount, quota: VoQuota) -> Refusal | None:
    """Return why a VO may not have this reservation too, given what it holds; None if it may."""
    then = held.plus(terms.cpus, terms.duration_seconds)
    for what, amount, most in (
        ("reservations", then.agreements, quota.agreements),
        ("reserved CPUs", then.cpus, quota.cpus),
        ("reserved CPU seconds", then.cpu_seconds, quota.cpu_seconds),
    ):
        if amount > most:
            text = f"VO {terms.vo} would have {amount:g} {what}, and may have {most:g}"
            return Refusal(AgreementReason.QUOTA, text)
    return None
