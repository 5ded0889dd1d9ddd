"""Input data of jobs: the replicas of logical file names, from a catalogue, and the sites whose storage holds them."""

from collections.abc import Iterable, Mapping, Sequence

import structlog

from services.resource_broker.brokered_jobs import BrokeredJob
from wms.broker.candidate import Candidate
from wms.broker.replicas import LOGICAL, is_near, storage_host
from wms.errors import Unavailable
from wms.transfer.replica_resolver import ReplicaResolver

log = structlog.get_logger()

Replicas = Mapping[str, tuple[str, ...]]
"""The replicas of files: for each logical file name, the URLs of its copies."""


async def replicas_of(jobs: Iterable[BrokeredJob], catalogue: ReplicaResolver) -> Replicas:
    """Return the replicas of all logical file names among the jobs' inputs, as the catalogue lists them.

    The result is empty if no job has such inputs, or while the catalogue does not answer.
    """
    names = {
        url
        for job in jobs
        for each in job.description.inputs
        for url in each.sources
        if url.partition(":")[0].casefold() == LOGICAL
    }
    if not names:
        return {}
    try:
        return await catalogue.replicas(sorted(names))
    except Unavailable as error:
        log.warning("input data restrict no site just now", error=error.message)
        return {}


def sites_of(replicas: Replicas, candidates: Sequence[Candidate]) -> Mapping[str, frozenset[str]]:
    """Return, for each logical file name, the sites of `candidates` that hold a replica of it.

    A site holds a replica if the storage of the replica is close to one of its elements. A name without such a site is left
    out, and so excludes no site.
    """
    found = {
        name: frozenset(
            each.site for each in candidates if any(is_near(each, storage_host(url)) for url in urls)
        )
        for name, urls in replicas.items()
    }
    return {name: sites for name, sites in found.items() if sites}
