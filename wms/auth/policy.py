"""Authorisation: a table of rights, of the actions that each permits, and of the jobs on which.

Jobs form four circles: those of the owner (a person in one group of one VO), of the group, of the VO, and all jobs. A right grants actions
within a circle. The widest circle of a principal's rights is its scope, which becomes three columns of a query. As in DIRAC, nobody submits
for another user. The same person in another group has no access to the job.

The answer about a job out of reach is `refusal`: «no such job». It is the same as for an id that never existed, so that ids reveal nothing.
«Not allowed» is answered only to principals who may see the job.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from wms.auth.principal import ANY_SITE, Principal, Right
from wms.errors import Rejected

Action: TypeAlias = Literal[
    "submit",
    "see",
    "see_detail",
    "fetch_output",
    "kill",
    "hold",
    "stop_and_hold",
    "release",
    "reschedule",
    "remove",
    "edit",
    "order_pilots",
    "set_shares",
    "administer",
]
Reach: TypeAlias = Literal["nothing", "owner", "group", "vo", "all"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
REACHES: Final[tuple[Reach, ...]] = get_args(Reach)
"""On which jobs an action is permitted, from none to all."""

ON_JOBS: Final[frozenset[Action]] = frozenset(ACTIONS) - {
    "submit",
    "order_pilots",
    "set_shares",
    "administer",
}

GRANTS: Final[Mapping[str, Mapping[Action, Reach]]] = {
    Right.JOB_MONITOR: {"see": "vo"},
    Right.JOB_ADMINISTRATOR: {**dict.fromkeys((*ON_JOBS, "order_pilots"), "vo"), "set_shares": "vo"},
    Right.OPERATOR: {
        **dict.fromkeys((*ON_JOBS, "order_pilots"), "all"),
        "set_shares": "all",
        "administer": "all",
    },
}
OF_USERS: Final[Mapping[Action, Reach]] = dict.fromkeys((*ON_JOBS, "submit", "order_pilots"), "owner")
"""The actions that each user may take without any right, and on whose jobs. Services, pilots and sites may not."""
IN_SHARING_GROUPS: Final[Mapping[Action, Reach]] = dict.fromkeys((*ON_JOBS, "order_pilots"), "group")
"""Actions that members of a group may take on all its jobs if the group shares them (`wms shares set --job-sharing`)."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs on which a principal may take an action: those whose owner, group and VO equal each column that is not None.

    A scope with empty texts contains no job.
    """

    reach: Reach
    owner: str | None = None
    group: str | None = None
    vo: str | None = None

    def covers(self, owner: str, group: str, vo: str) -> bool:
        """Return whether a job of this owner, group and VO is in the scope."""
        return (
            self.reach != "nothing"
            and (self.owner is None or self.owner == owner)
            and (self.group is None or self.group == group)
            and (self.vo is None or self.vo == vo)
        )


NOTHING: Final = Scope(reach="nothing", owner="", group="", vo="")


def scope(principal: Principal, action: Action) -> Scope:
    """Return on which jobs the principal may take this action."""
    match _reach(principal, action):
        case "nothing":
            return NOTHING
        case "owner":
            return Scope(reach="owner", owner=principal.owner, group=principal.group, vo=principal.vo)
        case "group":
            return Scope(reach="group", group=principal.group, vo=principal.vo)
        case "vo":
            return Scope(reach="vo", vo=principal.vo)
        case "all":
            return Scope(reach="all")


def allowed(principal: Principal, action: Action, owner: str, group: str, vo: str) -> bool:
    """Return whether the principal may take the action on a job of this owner, group and VO."""
    return scope(principal, action).covers(owner, group, vo)


def may_advertise(principal: Principal, site: str) -> bool:
    """Return whether the principal may publish ads of a site: it is the site in its token, or a pattern there matches it."""
    return principal.kind == "site" and (
        principal.site in (site, ANY_SITE) or any(fnmatchcase(site, each) for each in principal.sites)
    )


def no_such_job(job_id: int) -> Rejected:
    """Return, not raise, the Rejected for a job that does not exist, or that the principal may not know of."""
    return Rejected("NO_SUCH_JOB", f"there is no job {job_id}", "`wms jobs` lists yours")


def refusal(
    principal: Principal, action: Action, owner: str, group: str, vo: str, *, job_id: int
) -> Rejected:
    """Return, not raise, the Rejected for an action that the principal may not take on a job of this owner, group and VO.

    If the principal may not even see the job, it says that there is no such job.
    """
    if not allowed(principal, "see", owner, group, vo):
        return no_such_job(job_id)
    what = action.replace("_", " ")
    return Rejected("NOT_ALLOWED", f"job {job_id} is another's: you have no right to {what}")


def _reach(principal: Principal, action: Action) -> Reach:
    if principal.kind not in ("user", "service") or not _permits(principal, action):
        return "nothing"
    own: Reach = OF_USERS.get(action, "nothing") if principal.kind == "user" else "nothing"
    granted = [GRANTS[right].get(action, "nothing") for right in principal.rights if right in GRANTS]
    shared: Reach = IN_SHARING_GROUPS.get(action, "nothing") if principal.shares_jobs else "nothing"
    return max([own, shared, *granted], key=REACHES.index)


def _permits(principal: Principal, action: Action) -> bool:
    return principal.actions is None or action in principal.actions
