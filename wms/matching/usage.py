"""Past usage of resources: owners and groups that used more than their share weigh less in the draw, and those that used less, more.

The usage of an attempt is its wall time times its processors. An owner's usage is the sum over the owner's ended attempts. Each
attempt counts half as much after every half-life, so that old usage fades. Among the entities of a VO with waiting jobs (groups
that share their jobs, and single owners of other groups) the share of an entity counts for

    share * min(10, max(1/10, target / used))        target: its fraction of their shares, used: its fraction of their usage

The two bounds keep any share from becoming next to nothing or everything. If no entity has used anything, the shares hold as they
are. The same is true of an entity alone, whose two fractions are both 1.
"""

from collections.abc import Collection, Mapping

from wms.ids import Identity
from wms.matching.shares import GroupShare, VoGroup

STRONGEST = 10.0


def factor(target: float, used: float) -> float:
    """Return the factor on a share, 0.1 to 10, of an owner or group with the fractions `target` of all shares and `used` of all usage."""
    if target >= used * STRONGEST:
        return STRONGEST
    return max(1 / STRONGEST, target / used)


def factors(
    waiting: Mapping[VoGroup, Collection[str]],
    shares: Mapping[VoGroup, GroupShare],
    used: Mapping[Identity, float],
) -> dict[VoGroup, dict[str, float]]:
    """Return the factors by which past usage changes shares, by group and by each of its owners with waiting jobs.

    `waiting` holds these owners by group, and `used` the usage of each owner in any one unit. All owners of a group that shares
    its jobs have the same factor.
    """
    found: dict[VoGroup, dict[str, float]] = {}
    for vo in {group[0] for group in waiting}:
        groups = {group: set(owners) for group, owners in waiting.items() if group[0] == vo and owners}
        entities = _entities(groups, shares, used)
        entitled = sum(share for share, _ in entities.values())
        all_used = sum(seconds for _, seconds in entities.values())
        for group, owners in groups.items():
            found[group] = {}
            for owner in owners:
                share, seconds = entities[_entity(group, owner, shares)]
                known = entitled > 0 and all_used > 0
                found[group][owner] = factor(share / entitled, seconds / all_used) if known else 1.0
    return found


def _entities(
    groups: Mapping[VoGroup, Collection[str]],
    shares: Mapping[VoGroup, GroupShare],
    used: Mapping[Identity, float],
) -> dict[Identity, tuple[float, float]]:
    """Return the share and the usage of each entity.

    A group is one entity if its members share jobs; otherwise each owner in it is one.
    """
    of_groups: dict[VoGroup, float] = {}
    for (_, group, vo), seconds in used.items():
        of_groups[vo, group] = of_groups.get((vo, group), 0.0) + seconds
    entities: dict[Identity, tuple[float, float]] = {}
    for (vo, name), owners in groups.items():
        share = shares.get((vo, name)) or GroupShare()
        for owner in owners:
            if share.job_sharing:
                entities[Identity("", name, vo)] = (share.job_share, of_groups.get((vo, name), 0.0))
            else:
                identity = Identity(owner, name, vo)
                entities[identity] = (share.job_share / len(owners), used.get(identity, 0.0))
    return entities


def _entity(group: VoGroup, owner: str, shares: Mapping[VoGroup, GroupShare]) -> Identity:
    share = shares.get(group) or GroupShare()
    return Identity("" if share.job_sharing else owner, group[1], group[0])
