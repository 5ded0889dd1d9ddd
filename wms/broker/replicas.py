"""Replicas of files: the storage that an input is read from, the storage near a computing element, and DIRAC's rule for input data.

A URL names its storage by its host. An input with a logical name (`lfn:...`) is *input data*. As in DIRAC, a job goes only to sites with a replica of
all its input data. An input with another URL is transferred from wherever it is.
"""

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import FileToMove, JobToPlace
from wms.broker.knowledge import Knowledge
from wms.matching.clauses import Mismatch

LOGICAL = "lfn"
"""The URL scheme of logical file names, for which a replica catalogue lists the replicas."""
DATA = "input data"
"""The name of the rule that rejects a candidate whose site lacks replicas of the job's input data."""
_SHOWN = 3


@lru_cache(maxsize=65_536)
def storage_host(url: str) -> str:
    """Return the host of a URL in lower case; empty for a logical name, a path, or a malformed URL."""
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:
        return ""


def storage_hosts(file: FileToMove, knowledge: Knowledge) -> frozenset[str]:
    """Return the hosts from which a file may be read, by its URLs and the known replicas of its logical names.

    An unknown host is an empty string; the set has at least one member.
    """
    found = (url for each in file.urls for url in knowledge.replicas.get(each, (each,)))
    return frozenset(map(storage_host, found)) or frozenset({""})


def is_logical(file: FileToMove) -> bool:
    """Return whether a file has logical names (`lfn:...`) only. A file without URLs has none."""
    return bool(file.urls) and all(url.partition(":")[0].casefold() == LOGICAL for url in file.urls)


def is_near(candidate: Candidate, host: str) -> bool:
    """Return whether a storage host, in lower case, is close to a candidate; an empty host is not."""
    return bool(host) and any(
        (storage_host(each) or each.casefold()) == host for each in candidate.near_storage
    )


def lacking_inputs(job: JobToPlace, candidate: Candidate, knowledge: Knowledge) -> Mismatch | None:
    """Return why a job may not run at a candidate because of its input data; None if it may.

    Input data without any known replica exclude no site: the transfer of inputs reports what is wrong with them.
    """
    lacking = [each.name for each in _input_data(job) if not _is_at(each, candidate.site, knowledge)]
    if not lacking:
        return None
    more = len(lacking) - _SHOWN
    names = ", ".join(lacking[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return Mismatch(DATA, f"{candidate.site} has no replica of {names}")


def _input_data(job: JobToPlace) -> Iterable[FileToMove]:
    return (each for each in job.inputs if is_logical(each))


def _is_at(file: FileToMove, site: str, knowledge: Knowledge) -> bool:
    known = [sites for url in file.urls if (sites := knowledge.replica_sites.get(url))]
    return not known or any(site in sites for sites in known)
