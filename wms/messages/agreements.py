"""`wms.agreement.offers` and `wms.agreement.decisions`: reservations of CPUs, in two phases. Keys: the site; the job.

The messages are signed by services, and may come twice. The table of agreements is the truth: who misses a decision reads it there.
"""

import msgspec

from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementState
from wms.agreement.terms import AgreementTerms
from wms.bounds import Explanation, GivenName, Line, Moment
from wms.ids import AgreementId, JobId

OFFERS_TOPIC = "wms.agreement.offers"
DECISIONS_TOPIC = "wms.agreement.decisions"


class Reserve(AgreementTerms, frozen=True, kw_only=True, tag="reserve"):
    """An offer: the site is asked to reserve CPUs, and answers by a decision. A second one with the same id takes no effect."""


class Confirm(msgspec.Struct, frozen=True, kw_only=True, tag="confirm"):
    """The reservation is needed: a temporary agreement becomes confirmed, if it has not expired."""

    agreement_id: AgreementId
    site: GivenName


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """The reservation is not needed any more, whether or not it was confirmed."""

    agreement_id: AgreementId
    site: GivenName
    code: AgreementReason = AgreementReason.CANCELLED
    text: Explanation = ""


class AgreementDecided(msgspec.Struct, frozen=True, kw_only=True, tag="agreement-decision"):
    """The new state of an agreement: the site's answer to an offer, or what became of it later."""

    agreement_id: AgreementId
    job_id: JobId
    site: GivenName
    ce: GivenName
    state: AgreementState
    start_at: Moment | None = None
    ends_at: Moment | None = None
    reservation: Line = ""
    """The name by which the batch system knows the reservation; empty if it does not."""
    expires_at: Moment | None = None
    """When a temporary agreement expires."""
    code: AgreementReason
    text: Explanation = ""


ToSite = Reserve | Confirm | Cancel
