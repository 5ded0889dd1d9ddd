"""Quotas: how much a VO may have reserved at a site at the same time."""

from collections.abc import Iterable, Mapping
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
    owner_agreements: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1_000_000
    """The most reservations of one of its users."""


class ReservedAmount(msgspec.Struct, frozen=True):
    """What a VO has reserved at a site: its agreements, the sums of CPUs and of CPU seconds, and the agreements of each user."""

    agreements: int = 0
    cpus: int = 0
    cpu_seconds: float = 0.0
    owners: Mapping[str, int] = {}

    def plus(self, cpus: int, seconds: float, owner: str = "") -> "ReservedAmount":
        """Return the amount with one more reservation, of `cpus` CPUs for `seconds`."""
        return self.together(ReservedAmount(1, cpus, cpus * seconds, {owner: 1}))

    def together(self, more: "ReservedAmount") -> "ReservedAmount":
        """Return the sum of two amounts."""
        return ReservedAmount(
            self.agreements + more.agreements,
            self.cpus + more.cpus,
            self.cpu_seconds + more.cpu_seconds,
            {
                **self.owners,
                **{each: self.owners.get(each, 0) + count for each, count in more.owners.items()},
            },
        )


def reserved(held: Iterable[tuple[int, float]]) -> ReservedAmount:
    """Return the sum over reservations, each given as its CPUs and its duration in seconds."""
    total = ReservedAmount()
    for cpus, seconds in held:
        total = total.plus(cpus, seconds)
    return total


def over_quota(terms: AgreementTerms, held: ReservedAmount, quota: VoQuota) -> Refusal | None:
    """Return why a VO may not have this reservation too, given what it holds; None if it may."""
    then = held.plus(terms.cpus, terms.duration_seconds, terms.owner)
    vo = f"VO {terms.vo}"
    for who, what, amount, most in (
        (vo, "reservations", then.agreements, quota.agreements),
        (vo, "reserved CPUs", then.cpus, quota.cpus),
        (vo, "reserved CPU seconds", then.cpu_seconds, quota.cpu_seconds),
        (f"{terms.owner} of {vo}", "reservations", then.owners[terms.owner], quota.owner_agreements),
    ):
        if amount > most:
            text = f"{who} would have {amount:g} {what}, and may have {most:g}"
            return Refusal(AgreementReason.QUOTA, text)
    return None
