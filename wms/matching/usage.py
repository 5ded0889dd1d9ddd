"""Historic usage: who has used more of late than its share says weighs less now, and who less, more.

What an attempt takes of a site is its wall time by its processors. An owner's usage is the sum over its ended attempts, each
halved with every half-life that has passed since, so that it forgets. Among the entities of a VO that have waiting jobs -
groups that share their jobs, and owners of the others - an entity's share counts for

    share * min(10, max(1/10, target / used))        target: its part of their shares, used: its part of their usage

Both bounds keep any share from becoming next to nothing or everything. Where nobody has used anything, shares hold as they
are; an entity alone has both parts whole, and its share as it is.
"""

from collections.abc import Collection, Mapping

from wms.ids import Identity
from wms.matching.shares import GroupShare, VoGroup

STRONGEST = 10.0


def factor(target: float, used: float) -> float:
    """Return by what a share counts, of an entity that should have the one part and has used the other."""
    if target >= used * STRONGEST:
        return STRONGEST
    return max(1 / STRONGEST, target / used)


def factors(
    waiting: Mapping[VoGroup, Collection[str]],
    shares: Mapping[VoGroup, GroupShare],
    used: Mapping[Identity, float],
) -> dict[VoGroup, dict[str, float]]:
    """Return by what the shares of groups count, for each of their owners with waiting jobs.

    `waiting` are these owners, `used` is in any unit. The owners of a group that shares its jobs all have one factor.
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
    """Return of each entity its share, and what it has used."""
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
