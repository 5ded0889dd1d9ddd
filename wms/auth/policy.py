"""Who may do what to whose job: one table of rights, actions and how far each reaches.

Four circles lie in one another: the owner's jobs (one owner, under one group of one VO), the group's, the VO's, all. A
right grants actions up to a circle; the widest that a principal's rights grant is its scope, which also is three columns
for a query. As in DIRAC, nobody submits for another, whatever their rights, and an owner is one under a group: under
another group the same person is a stranger to the job, unless rights say otherwise.

What a caller answers about a job out of reach is `refusal`: the same «no such job» as for an id that never was, so that
ids tell a stranger nothing. «Not allowed» is said only to those who may see the job anyway.
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
"""From the narrowest to the widest."""

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
"""What every user may without any right. Services own no jobs, and pilots and sites act on none by this table."""
IN_SHARING_GROUPS: Final[Mapping[Action, Reach]] = dict.fromkeys((*ON_JOBS, "order_pilots"), "group")
"""What members may whose group shares its jobs, by its own setting (`wms shares set --job-sharing`)."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs: those equal in every column that is not None. Empty columns equal no job's."""

    reach: Reach
    owner: str | None = None
    group: str | None = None
    vo: str | None = None

    def covers(self, owner: str, group: str, vo: str) -> bool:
        """Tell whether a job is in it."""
        return (
            self.reach != "nothing"
            and (self.owner is None or self.owner == owner)
            and (self.group is None or self.group == group)
            and (self.vo is None or self.vo == vo)
        )


NOTHING: Final = Scope(reach="nothing", owner="", group="", vo="")


def scope(principal: Principal, action: Action) -> Scope:
    """Return on which jobs the principal may take the action."""
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
    """Tell whether the principal may take the action on a job of that owner, group and VO."""
    return scope(principal, action).covers(owner, group, vo)


def may_advertise(principal: Principal, site: str) -> bool:
    """Tell whether the principal may publish what a site has: its own, or one that a pattern of its token's fits."""
    return principal.kind == "site" and (
        principal.site in (site, ANY_SITE) or any(fnmatchcase(site, each) for each in principal.sites)
    )


def no_such_job(job_id: int) -> Rejected:
    """Return the answer about a job that is not there, or of which the asker may not even know."""
    return Rejected("NO_SUCH_JOB", f"there is no job {job_id}", "`wms jobs` lists yours")


def refusal(
    principal: Principal, action: Action, owner: str, group: str, vo: str, *, job_id: int
) -> Rejected:
    """Return the answer to one who may not take the action on the job."""
    if not allowed(principal, "see", owner, group, vo):
        return no_such_job(job_id)
    what = action.replace("_", " ")
    return Rejected("NOT_ALLOWED", f"job {job_id} is another's: you have no right to {what}")


def _reach(principal: Principal, action: Action) -> Reach:
    if principal.kind not in ("user", "service"):
        return "nothing"
    own: Reach = OF_USERS.get(action, "nothing") if principal.kind == "user" else "nothing"
    granted = [GRANTS[right].get(action, "nothing") for right in principal.rights if right in GRANTS]
    shared: Reach = IN_SHARING_GROUPS.get(action, "nothing") if principal.shares_jobs else "nothing"
    return max([own, shared, *granted], key=REACHES.index)
