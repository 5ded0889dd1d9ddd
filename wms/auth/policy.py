"""Authorisation: which actions each right permits, and on which jobs.

There are four sets of jobs, each within the next: those of the owner (a person in one group of one VO), of the group, of the
VO, and all jobs. A right permits actions on one of these sets. The widest set that a principal's rights give for an action is
its scope. Queries compare three columns with it: owner, group and VO. As in DIRAC, nobody submits for another user. The same
person in another group has no access to the job.

A request for a job that the principal may not see is answered with NO_SUCH_JOB. An id that never existed has the same answer,
so that ids reveal nothing. NOT_ALLOWED is answered only to principals who may see the job.
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
"""The sets of jobs on which an action can be permitted, from none to all. Each contains the one before."""

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
"""The actions that every user may take without any right, and on whose jobs. Principals of other kinds, such as pilots, have none of them."""
IN_SHARING_GROUPS: Final[Mapping[Action, Reach]] = dict.fromkeys((*ON_JOBS, "order_pilots"), "group")
"""The actions that members of a group may take on all jobs of the group, if the group shares its jobs among them.

The group's setting `job-sharing` decides on that (`wms shares set --job-sharing`).
"""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The set of jobs on which a principal may take an action: those whose owner, group and VO equal the fields here.

    A field that is None fits any job. A scope with the reach `nothing` has empty fields and contains no job.
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
    """Return the set of jobs on which the principal may take this action; NOTHING if there is none."""
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
    """Return whether the principal may publish ads (what the computing elements offer) of this site.

    It may if it is a site's principal, and its token names the site, ANY_SITE, or a pattern that matches the site.
    """
    return principal.kind == "site" and (
        principal.site in (site, ANY_SITE) or any(fnmatchcase(site, each) for each in principal.sites)
    )


def no_such_job(job_id: int) -> Rejected:
    """Return, not raise, the error NO_SUCH_JOB: the job does not exist, or the principal may not see it."""
    return Rejected("NO_SUCH_JOB", f"there is no job {job_id}", "`wms jobs` lists yours")


def refusal(
    principal: Principal, action: Action, owner: str, group: str, vo: str, *, job_id: int
) -> Rejected:
    """Return, not raise, the error for an action that the principal may not take on a job of this owner, group and VO.

    Its code is NOT_ALLOWED if the principal may see the job, else NO_SUCH_JOB. The caller has found that the action is not
    allowed.
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
