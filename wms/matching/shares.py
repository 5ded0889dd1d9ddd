"""The shares of groups, their policies, and what of jobs decides on the weight of a task queue (`wms.matching.share_weights`)."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from wms.matching.grouping import Requirements, without_case

VoGroup: TypeAlias = tuple[str, str]
"""The names of a VO and of one of its groups."""

DEFAULT_SHARE = 1000.0


class GroupShare(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The share of a group in the random draw, and the policies for its members' jobs.

    `job_sharing`: the members share their jobs. The share is then undivided, each member may act on the others' jobs, and a
    private pilot of one member takes the jobs of all. `background`: queues of jobs with a user priority of about 0.1 or less run
    only where nothing else waits. `private_pilots`: pilots for the group's jobs alone are sent.
    """

    job_share: Annotated[float, Meta(ge=0, le=1e9)] = DEFAULT_SHARE
    job_sharing: bool = False
    background: bool = False
    private_pilots: bool = False


def real_priority(user_priority: float) -> float:
    """Return the weight of a user priority: 1e-5 for 0, a million for 10 and above, else the priority itself, at least 0.001."""
    if user_priority == 0:
        return 1e-5
    return 1e6 if user_priority >= 10 else max(0.001, float(user_priority))


def share_class(requirements: Requirements) -> Requirements:
    """Return requirements without sites, banned sites, memory and disk: equal for all queues of one share class."""
    seen_by = {"sites": (), "banned_sites": (), "min_ram_mb": 0, "max_ram_mb": 0, "min_disk_mb": 0}
    return without_case(replace(requirements, **seen_by))
