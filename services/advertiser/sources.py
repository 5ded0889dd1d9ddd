"""Builds the configured sources of ads. Each is a reader of computing elements with the site's statements and its intervals."""

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from services.advertiser.config import ArcQueues, BatchSettings, Config, IndexSettings, SiteStatement
from services.advertiser.file import FileProvider
from services.advertiser.local import Local
from services.advertiser.lsf import Lsf
from services.advertiser.pbs import Pbs
from services.advertiser.processes import environments
from services.advertiser.provider import Provider
from services.advertiser.site_token import SiteToken
from services.advertiser.slurm import Slurm
from wms.classad.expression import Expression
from wms.ids import CeId
from wms.runtime.machine import look
from wms.site import ComputingElement

LOCAL_LOOK_SECONDS = 5.0
ARC_LAG_SECONDS = 60.0
"""The assumed age, in seconds, of the numbers in an answer of an ARC computing element. ARC updates them once a minute."""
INDEX_LAG_SECONDS = 180.0
"""The assumed age, in seconds, of the numbers in an answer of an index server. Such a server caches them for minutes."""


class AdvertisedSource(NamedTuple):
    """A source of computing elements with its settings, and with the intervals of reading, publishing and expiry in seconds.

    `settings` returns what the site states about a computing element.
    """

    name: str
    provider: Provider
    settings: Callable[[ComputingElement], SiteStatement]
    look_seconds: float
    period_seconds: float
    lifetime_seconds: float
    may_still_exist: Callable[[CeId], bool] = lambda _: False
    """Returns whether a computing element that the last reading did not return may still exist. If so, it is not withdrawn."""
    lag_seconds: float = 0.0
    """How old the job counts of the source may be when they are read, in seconds."""
    close: Callable[[], Awaitable[None]] | None = None
    """A function that closes the source's connections. None if it has none."""


def sources(config: Config) -> Iterator[AdvertisedSource]:
    """Yield the configured sources: this machine, if it has computing elements, and each batch system, file and index server.

    Raise Rejected for a configuration that cannot work, such as a malformed expression.
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
        yield _arc(number, arc)
    for number, file in enumerate(config.files):
        yield _queues(f"file-{number}", FileProvider(file), file)
    for number, settings in enumerate(config.indexes):
        yield _index(number, settings, config)


def _arc(number: int, settings: ArcQueues) -> AdvertisedSource:
    from services.advertiser.arc import Arc

    return _queues(f"arc-{number}", Arc(settings), settings)._replace(lag_seconds=ARC_LAG_SECONDS)


def _index(number: int, settings: IndexSettings, config: Config) -> AdvertisedSource:
    from services.advertiser.indexes import Indexes

    token = SiteToken(config.advertising.token_file)
    indexes = Indexes(settings, config.kafka, token.bearer)
    return _queues(f"index-{number}", indexes, indexes.settings)._replace(
        may_still_exist=indexes.may_still_exist,
        lag_seconds=settings.fresh_seconds + INDEX_LAG_SECONDS,
        close=indexes.close,
    )


def _parse(settings: SiteStatement) -> None:
    """Raise Rejected if a configured expression is malformed. It is called at the start, so that administrators notice faults."""
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
