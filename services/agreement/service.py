"""Builds the agreement service: creates its loops, which decide on offers and hold reservations, and adds them to a host."""

from services.agreement.agreement_upkeep import AgreementUpkeep, Reconciliation
from services.agreement.config import Config
from services.agreement.configured_elements import elements
from services.agreement.offer_decisions import OfferDecisions
from services.agreement.offers import AgreementOffers
from services.agreement.port import ServedElement
from wms.messages.agreements import OFFERS_TOPIC, ToSite, offers_consumer
from wms.runtime.every import Every
from wms.runtime.host import Host

DECIDE_SECONDS = 0.5
"""Seconds between two rounds of decisions on offers. After an instance has stored an offer itself, its next round begins at once."""


async def build(host: Host, config: Config) -> None:
    """Create the loops of the agreement service from its configuration and add them to `host`, which runs them."""
    settings = config.agreement
    served = elements(config, host.patient_db)
    upkeep = AgreementUpkeep(host.patient_db, settings, served)
    host.every("tell", 20.0, upkeep.tell)
    host.every("end", 0.5, upkeep.end)
    host.every("forget", 600.0, upkeep.forget)
    offers = AgreementOffers(
        settings.site, {each.ce: _serve(host, config, each, upkeep).wake for each in served}
    )
    host.consume(offers_consumer(settings.site), OFFERS_TOPIC, ToSite, offers.handle)
    host.show("offers", lambda: offers.taken)
    host.show("strays_removed", lambda: upkeep.strays)


def _serve(host: Host, config: Config, element: ServedElement, upkeep: AgreementUpkeep) -> Every:
    """Add the loops for one element to the host: one decides on offers, others move or release reservations or compare them.

    Return the loop that decides.
    """
    settings = config.agreement
    deciding = OfferDecisions(
        host.patient_db, settings.site, element, host.instance_id, settings.turn_seconds
    )
    loop = host.every(f"decide-{element.ce}", DECIDE_SECONDS, deciding.round)
    if element.helper is None:
        host.every(f"improve-{element.ce}", 2.0, deciding.improve)
        return loop
    reconciliation = Reconciliation(host.patient_db, settings.site, element, upkeep)
    host.every(f"release-{element.ce}", 0.5, reconciliation.release)
    host.every(f"reconcile-{element.ce}", settings.reconcile_seconds, reconciliation.compare)
    return loop
