"""Reservations of a testbed's cluster, as Slurm itself lists them."""

import os
from datetime import datetime

from services.agreement.config import SlurmReservations
from services.agreement.slurm import SlurmElement
from services.agreement.slurm_listing import ListedReservation, reservations
from tests.middleware import Sites
from wms.agreement.decision import ReservationRules

GRACE_SECONDS = 300.0


def slurm_element(
    testbed: Sites, name: str = "beta", prefix: str = "wms", grace: float = GRACE_SECONDS
) -> SlurmElement:
    told = SlurmReservations(configuration=str(testbed.slurm(name)), partition="main", prefix=prefix)
    return SlurmElement(told, ReservationRules(), grace, os.environ["PATH"])


def listed(testbed: Sites, name: str = "beta") -> dict[str, ListedReservation]:
    """Return what Slurm lists, by name."""
    printed = testbed.run(name, "env", "TZ=UTC", "scontrol", "--oneliner", "show", "reservation")
    return {each.name: each for each in reservations(printed)}


def delete_all(testbed: Sites, name: str = "beta") -> None:
    for each in listed(testbed, name):
        testbed.run(name, "scontrol", "delete", f"reservation={each}")


def starts(testbed: Sites, name: str = "beta") -> dict[str, datetime]:
    return {each: found.start_at for each, found in listed(testbed, name).items()}
