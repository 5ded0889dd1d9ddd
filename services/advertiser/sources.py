"""What the configuration names to be advertised: a provider each, what the site says of its elements, and how often."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from services.advertiser.arc import Arc
from services.advertiser.config import BatchSettings, Config, SiteStatement
from services.advertiser.file import FileProvider
from services.advertiser.indexes import Indexes, Voice
from services.advertiser.local import Local
from services.advertiser.lsf import Lsf
from services.advertiser.pbs import Pbs
from services.advertiser.processes import environments
from services.advertiser.provider import Provider
from services.advertiser.slurm import Slurm
from wms.classad.expression import Expression
from wms.ids import CeId
from wms.runtime.machine import look
from wms.site import ComputingElement

LOCAL_LOOK_SECONDS = 5.0
ARC_LAG_SECONDS = 60.0
"""A-REX tells what its information provider wrote last, once a minute."""
INDEX_LAG_SECONDS = 180.0
"""What an index tells was told by an element, gathered and kept meanwhile: minutes, and nobody says how many."""


class AdvertisedSource(NamedTuple):
    """A provider, what is told of each of its elements, and how often it is looked at, advertised, and forgotten."""

    name: str
    provider: Provider
    settings: Callable[[ComputingElement], SiteStatement]
    look_seconds: float
    period_seconds: float
    lifetime_seconds: float
    doubtful: Callable[[CeId], bool] = lambda _: False
    """Whether the provider cannot say of an element that it did not tell of whether it is gone."""
    lag_seconds: float = 0.0
    """How old the source's numbers may be when it is read."""
    close: Callable[[], Awaitable[None]] | None = None
    """Lets go of what the provider holds."""


def sources(config: Config) -> Iterator[AdvertisedSource]:
    """Give this machine, if it has elements, and each batch or information system.

    Raises Rejected for what of the configuration cannot be, expressions that are none among it.
    """
    batch = (*config.slurm, *config.pbs, *config.lsf, *config.arc, *config.files, *config.indexes)
    for each in (*config.elements, *batch):
        _parse(each)
    if config.elements:
        yield _machine(config)
    for number, slurm in enumerate(config.slurm):
        yield _queues(f"slurm-{number}", Slurm(slurm), slurm)
    for number, pbs in enumerate(config.pbs):
        yield _queues(f"pbs-{number}", Pbs(pbs), pbs)
    for number, lsf in enumerate(config.lsf):
        yield _queues(f"lsf-{number}", Lsf(lsf), lsf)
    for number, arc in enumerate(config.arc):
        yield _queues(f"arc-{number}", Arc(arc), arc)._replace(lag_seconds=ARC_LAG_SECONDS)
    for number, file in enumerate(config.files):
        yield _queues(f"file-{number}", FileProvider(file), file)
    for number, settings in enumerate(config.indexes):
        voice = Voice(Path(config.auth.jwks), Path(config.advertising.token_file))
        indexes = Indexes(settings, config.kafka, voice.principal)
        yield _queues(f"index-{number}", indexes, indexes.settings)._replace(
            doubtful=indexes.doubts,
            lag_seconds=settings.fresh_seconds + INDEX_LAG_SECONDS,
            close=indexes.close,
        )


def _parse(settings: SiteStatement) -> None:
    """See whether the expressions are expressions, while the one who wrote them looks on."""
    for name, text in (("requirements", settings.requirements), ("rank", settings.rank)):
        if text:
            Expression.parse(text, name)


def _machine(config: Config) -> AdvertisedSource:
    own = {CeId(each.site, each.ce): each for each in config.elements}
    return AdvertisedSource(
        "machine",
        Local(config.elements, look=look, processes=environments),
        lambda offer: own[CeId(offer.site, offer.ce)],
        LOCAL_LOOK_SECONDS,
        config.advertising.period_seconds,
        config.advertising.lifetime_seconds,
    )


def _queues(name: str, provider: Provider, settings: BatchSettings) -> AdvertisedSource:
    return AdvertisedSource(
        name,
        provider,
        lambda _: settings,
        settings.look_seconds,
        settings.period_seconds,
        settings.lifetime_seconds,
    )
