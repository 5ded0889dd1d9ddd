"""How each middleware is told of a reservation: by an option of the batch job, or not at all."""

from collections.abc import Mapping
from typing import Final

_OPTIONS: Final[Mapping[str, str]] = {"slurm": "reservation", "lsf": "U"}
"""The name of the option in a request's attributes, by kind of dispatcher."""

RESERVING: Final = tuple(sorted(_OPTIONS))
"""The kinds of dispatcher whose elements keep a job until its reservation begins; at others it is sent then."""


def reservation_option(kind: str, name: str) -> dict[str, str]:
    """Return the option that puts a job into the reservation of that name; none without a name, or where there is no such option."""
    option = _OPTIONS.get(kind)
    return {option: name} if option and name else {}
