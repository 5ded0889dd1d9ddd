"""The topics `wms.agreement.offers` (key: the site) and `wms.agreement.decisions` (key: the job): reservations of CPUs.

A site first grants a temporary reservation, which the resource broker confirms or cancels. The messages are signed by services and
may arrive twice. The database's table of agreements is authoritative: a service that misses a decision reads it there.
"""

import msgspec

from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementState
from wms.agreement.terms import AgreementTerms
from wms.bounds import Explanation, GivenName, Line, Moment
from wms.ids import AgreementId, JobId, slug

OFFERS_TOPIC = "wms.agreement.offers"
DECISIONS_TOPIC = "wms.agreement.decisions"


def offers_consumer(site: str) -> str:
    """Return the name of the agreement service's consumer that reads `OFFERS_TOPIC` for a site.

    Each site has one of its own, as each reads the messages of all.
    """
    return f"offers-{slug(site)}"


class Reserve(AgreementTerms, frozen=True, kw_only=True, tag="reserve"):
    """The resource broker asks a site to reserve CPUs for a job. The site answers with an AgreementDecided.

    A second Reserve with the same `agreement_id` has no effect.
    """


class Confirm(msgspec.Struct, frozen=True, kw_only=True, tag="confirm"):
    """The resource broker needs the reservation: a Temporary agreement becomes Confirmed, unless it has expired."""

    agreement_id: AgreementId
    site: GivenName


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """The resource broker no longer needs the reservation, confirmed or not: the site frees it."""

    agreement_id: AgreementId
    site: GivenName
    code: AgreementReason = AgreementReason.CANCELLED
    text: Explanation = ""


class AgreementDecided(msgspec.Struct, frozen=True, kw_only=True, tag="agreement-decision"):
    """The new state of an agreement, with its reason: the site's answer to a Reserve, or a later change."""

    agreement_id: AgreementId
    job_id: JobId
    site: GivenName
    ce: GivenName
    state: AgreementState
    start_at: Moment | None = None
    ends_at: Moment | None = None
    reservation: Line = ""
    """The batch system's name of the reservation; empty if the batch system does not know of it."""
    expires_at: Moment | None = None
    """The time at which a Temporary agreement expires unless it is confirmed before."""
    code: AgreementReason
    text: Explanation = ""


ToSite = Reserve | Confirm | Cancel
