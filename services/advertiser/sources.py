"""What the configuration names to be advertised: a provider each, what the site says of its elements, and how often."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from services.advertiser.arc import Arc
from services.advertiser.config import BatchSettings, Config, Offered
from services.advertiser.file import File
from services.advertiser.local import Local
from services.advertiser.processes import count
from services.advertiser.provider import Provider
from services.advertiser.slurm import Slurm
from wms.classad.expression import Expression
from wms.runtime.machine import look
from wms.site import ComputingElement

LOCAL_LOOK_SECONDS = 5.0


class Source(NamedTuple):
    """A provider, what is told of each of its elements, and how often it is looked at, advertised, and forgotten."""

    name: str
    provider: Provider
    settings: Callable[[ComputingElement], Offered]
    look_seconds: float
    period_seconds: float
    lifetime_seconds: float


def sources(config: Config) -> Iterator[Source]:
    """Give this machine, if it has elements, and each batch or information system.

    Raises Rejected for what of the configuration cannot be, expressions that are none among it.
    """
    for settings in (*config.elements, *config.slurm, *config.arc, *config.files):
        _parse(settings)
    if config.elements:
        yield _machine(config)
    for number, slurm in enumerate(config.slurm):
        yield _queues(f"slurm-{number}", Slurm(slurm), slurm)
    for number, arc in enumerate(config.arc):
        yield _queues(f"arc-{number}", Arc(arc), arc)
    for number, file in enumerate(config.files):
        yield _queues(f"file-{number}", File(file), file)


def _parse(settings: Offered) -> None:
    """See whether the expressions are expressions, while the one who wrote them looks on."""
    for name, text in (("requirements", settings.requirements), ("rank", settings.rank)):
        if text:
            Expression.parse(text, name)


def _machine(config: Config) -> Source:
    own = {(each.site, each.ce): each for each in config.elements}
    return Source(
        "machine",
        Local(config.elements, look=look, count=count),
        lambda offer: own[offer.site, offer.ce],
        LOCAL_LOOK_SECONDS,
        config.advertising.period_seconds,
        config.advertising.lifetime_seconds,
    )


def _queues(name: str, provider: Provider, settings: BatchSettings) -> Source:
    return Source(
        name,
        provider,
        lambda _: settings,
        settings.look_seconds,
        settings.period_seconds,
        settings.lifetime_seconds,
    )
