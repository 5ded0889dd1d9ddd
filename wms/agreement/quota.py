"""Quotas: how much a VO may have reserved at a site at the same time."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.terms import AgreementTerms

OWNERS_LEAST = 4
"""The number of equal parts of a VO's `agreements`. One user may have one part, unless the site sets `owner_agreements`."""
OWNER_REMEDY = "wait until jobs have ended, cancel some (`wms reservations`), or ask the site for more `owner_agreements`"


class VoQuota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that one VO may have reserved at one site, over its undecided, temporary and confirmed agreements.

    An offer that would exceed it is denied.
    """

    agreements: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1_000
    cpus: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100_000_000
    """The most CPUs, summed over all reservations, even if these are at different times."""
    cpu_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e15)] = 1e15
    """The most CPU seconds: CPUs times duration, summed over all reservations."""
    owner_agreements: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    """The most reservations of one user of the VO; None: a quarter of `agreements`, and at least one."""

    @property
    def most_of_owner(self) -> int:
        """The most reservations that one user of the VO may have, as set by `owner_agreements` or derived from `agreements`."""
        if self.owner_agreements is not None:
            return self.owner_agreements
        return max(1, self.agreements // OWNERS_LEAST)


class ReservedAmount(msgspec.Struct, frozen=True):
    """What a VO has reserved at a site: the number of agreements, the sums of CPUs and of CPU seconds.

    `owners` has the number of agreements of each user.
    """

    agreements: int = 0
    cpus: int = 0
    cpu_seconds: float = 0.0
    owners: Mapping[str, int] = {}

    def plus(self, cpus: int, seconds: float, owner: str = "") -> "ReservedAmount":
        """Return the amount with one more reservation, of `cpus` CPUs for `seconds`, by the user `owner`."""
        return self.together(ReservedAmount(1, cpus, cpus * seconds, {owner: 1}))

    def together(self, more: "ReservedAmount") -> "ReservedAmount":
        """Return the sum of two amounts: of all numbers, and of each user's agreements."""
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
    """Return why an offer would exceed the quota of its VO or of one user; None if it would not.

    `held` is what the VO has reserved at the site.
    """
    then = held.plus(terms.cpus, terms.duration_seconds, terms.owner)
    for what, amount, most in (
        ("reservations", then.agreements, quota.agreements),
        ("reserved CPUs", then.cpus, quota.cpus),
        ("reserved CPU seconds", then.cpu_seconds, quota.cpu_seconds),
    ):
        if amount > most:
            text = f"VO {terms.vo} would have {amount:g} {what}, and may have {most:g}"
            return Refusal(AgreementReason.QUOTA, text)
    theirs = then.owners[terms.owner]
    if theirs > quota.most_of_owner:
        text = f"{terms.owner} of VO {terms.vo} would have {theirs:,} reservations, and may have {quota.most_of_owner:,}: {OWNER_REMEDY}"
        return Refusal(AgreementReason.OWNER_QUOTA, text)
    return None
