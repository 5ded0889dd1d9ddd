"""Handles `wms.resource.ads`: what sites say of themselves, if their token may speak for them."""

import structlog

from wms.auth.policy import may_advertise
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db import ad
from wms.db.database import Database, Transaction
from wms.messages.ads import Ad, Advertise, Withdraw

log = structlog.get_logger()


async def handle(tx: Transaction, batch: list[Delivery[Ad]]) -> None:
    """Store or forget what the ads say."""
    stored: list[Advertise] = []
    for delivery in batch:
        match delivery.message:
            case Advertise() as advertised if _may(delivery.principal, advertised.element.site):
                fault = advertised.element.fault()
                if fault:
                    log.warning(
                        "ad refused", site=advertised.element.site, ce=advertised.element.ce, fault=fault
                    )
                else:
                    stored.append(advertised)
            case Withdraw() as withdrawn if _may(delivery.principal, withdrawn.site):
                await ad.store(tx, stored)
                stored = []
                await ad.withdraw(tx, [withdrawn])
            case _:
                log.warning("ad refused: another site's token")
    await ad.store(tx, stored)


def _may(principal: Principal | None, site: str) -> bool:
    return principal is not None and may_advertise(principal, site)


class Expiry:
    """Forgets ads whose life is over."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def sweep(self) -> None:
        """Forget them."""
        async with self._db.transaction() as tx:
            forgotten = await ad.forget_expired(tx)
        if forgotten:
            log.info("ads expired", elements=forgotten)
