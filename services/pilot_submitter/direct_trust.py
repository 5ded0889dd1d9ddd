"""Whom a site trusts with jobs that are sent directly. No sandbox holds such a job: it can do whatever the account can that it runs as."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from wms.matching.grouping import Requirements

PARTS = "VO/GROUP/OWNER"


def pattern_fault(pattern: str) -> str:
    """Return why a text is no pattern of owners, which has the form `VO/GROUP/OWNER`; empty if it is one."""
    parts = pattern.split("/", 2)
    return (
        "" if len(parts) == 3 and all(parts) else f"`direct_trusted` names {pattern!r}, which is no {PARTS}"
    )


def trusts(patterns: Iterable[str], job: Requirements) -> bool:
    """Return whether one of these patterns `VO/GROUP/OWNER` names the owner of a job, by its requirements."""
    return any(_names(pattern, job) for pattern in patterns)


def _names(pattern: str, job: Requirements) -> bool:
    # Part by part: an owner may choose a name with slashes, and must not pass as somebody of another group by it.
    parts = pattern.split("/", 2)
    return all(map(fnmatchcase, (job.vo, job.owner_group, job.owner), parts))


def distrust_words(job: Requirements) -> str:
    """Return as a sentence why a job is not sent directly: nobody trusts its owner with that."""
    return (
        f"jobs of {job.owner} in {job.vo}/{job.owner_group} are not sent there directly: no sandbox would hold them, "
        "and `direct_trusted` of the element does not name them; leave out `dispatch`"
    )
