"""The weight of a task queue in the random draw, from the share of its group.

An entity is a group whose members share their jobs, else one owner of a group. Its share is the group's JobShare, divided by the
number of owners with waiting jobs if they do not share. The share is spread over the entity's queues by p, the mean of the real
priorities of a queue's waiting jobs:

    w(tq) = max(0.001, share * p(tq) / sum of p over the entity)          background queues: 0.001

**Classes.** Jobs of one kind fall into several queues when their data are at different sites. These queues differ only in
sites, banned sites, memory or disk, and form a class of n queues. A pilot sees only k of the n. If it drew by w alone, a group
with its work spread over a hundred sites would weigh a hundredth of its share at each site. But the share is meant to hold
everywhere. DIRAC therefore gives each queue of a class the sum W of the class. But then a pilot that sees k of them sees k * W.
If it sees all n, the class weighs n * W, which is n^2 times the weight of one queue. Here the class weighs W for every pilot
that sees any of it, whatever k:

    w(tq seen by a resource) = w(tq) * W / (sum of w over the queues of its class that this resource could take now)

With k = 1 this is DIRAC's weight, with k = n it is the plain formula, and the weights seen always sum to W. So a class that one
pilot sees whole is never heavier for being split.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wms.matching.shares import GroupShare

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]

LIGHTEST = 0.001
BACKGROUND_PRIORITY = 0.1

_NOTHING = 1e-30
"""A divisor in place of the weight 0 of a class without jobs. None of its jobs is drawn."""


def weights(group: GroupShare, owners: Ints, means: Floats, factors: Floats | float = 1.0) -> Floats:
    """Return the weights in the draw of one group's queues that have jobs, in the order given.

    `owners` is the number, from 0, of each queue's owner. `means` is p of each queue, the mean real priority of its waiting jobs.
    `factors` multiply the share of each queue's owner or group by past usage (`wms.matching.usage`).
    """
    background = means <= BACKGROUND_PRIORITY if group.background else np.zeros(len(means), dtype=bool)
    entities = np.zeros_like(owners) if group.job_sharing else owners
    share = group.job_share / max(1, int(np.count_nonzero(np.bincount(entities))))
    sums = np.bincount(entities, weights=np.where(background, 0.0, means))[entities]
    spread = np.divide(share * factors * means, sums, out=np.zeros_like(means), where=sums > 0)
    return np.where(background, LIGHTEST, np.maximum(LIGHTEST, spread))


def seen_parts(own: Floats, classes: Ints, totals: Floats) -> Floats:
    """Return, for each queue that fits a resource, which fraction of its share class's weight fits the resource.

    The draw divides the queue's weight by this fraction. `own` are the weights of these queues, `classes` the numbers of their
    classes, and `totals` the whole weight of every class.
    """
    seen = np.bincount(classes, weights=own, minlength=len(totals)).take(classes)
    parts: Floats = np.maximum(seen / np.maximum(totals.take(classes), _NOTHING), _NOTHING)
    return parts
