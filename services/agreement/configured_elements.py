"""Makes the computing elements that the service decides for, from its configuration."""

import os
from functools import partial

from services.agreement.config import Config, ReservableSettings
from services.agreement.port import ServedElement
from services.agreement.site_script import ScriptedElement
from services.agreement.slot_calendar import CalendarDecisions
from services.agreement.slurm import SlurmElement
from wms.agreement.decision import ReservationRules
from wms.db import ad
from wms.db.database import Database


def elements(config: Config, db: Database) -> list[ServedElement]:
    """Return the configured computing elements, each with its rules and its decision maker.

    An element whose reservations are in a batch system, or with a site's program, has a resource helper too. It lists and
    releases them.
    """
    return [_element(each, config, db) for each in config.elements]


def _element(settings: ReservableSettings, config: Config, db: Database) -> ServedElement:
    rules = ReservationRules(
        template=settings.template, quotas=config.quotas, owner_share=settings.owner_share
    )
    ce = settings.ce
    match settings.kind:
        case "slurm":
            path = os.environ.get("PATH", os.defpath)
            slurm = SlurmElement(settings.slurm, rules, config.agreement.grace_seconds, path)
            return ServedElement(ce=ce, rules=rules, maker=slurm, helper=slurm)
        case "script":
            scripted = ScriptedElement(settings.script, rules, settings.cpus)
            return ServedElement(ce=ce, rules=rules, maker=scripted, helper=scripted)
        case _:
            cpus = partial(_cpus, db, config.agreement.site, settings)
            return ServedElement(ce=ce, rules=rules, maker=CalendarDecisions(rules, cpus))


async def _cpus(db: Database, site: str, settings: ReservableSettings) -> int:
    """Return how many CPUs of an element may be reserved: as configured, else as many as its ad has slots; 0 without an ad."""
    if settings.cpus:
        return settings.cpus
    async with db.transaction() as tx:
        ads = await ad.fresh(tx)
    return next((each.slots for each in ads if each.ce_id == (site, settings.ce)), 0)
