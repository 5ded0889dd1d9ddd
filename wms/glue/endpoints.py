"""Which endpoints of a service take the jobs of a share, which of them is used, and whether any of them works.

A share says whether its queue takes jobs, an endpoint whether the service does: ARC always writes `production` into its shares,
and `draining` into its endpoints. Both hold.
"""

from collections.abc import Sequence

from wms.glue.glue2 import Endpoint, Environment, Manager, Service, Share

PREFERRED = ("org.nordugrid.arcrest", "org.ogf.glue.emies.activitycreation")
CREATION = "executionmanagement.jobcreation"
_STATES = ("production", "queueing", "draining", "closed")
"""The better first; what nobody says is the first."""


def endpoints_of(service: Service, shares: Sequence[Share]) -> list[Endpoint]:
    """Return the endpoints that shares' jobs are sent to, the one to use first: of those that work best the most preferred.

    They are those that shares and endpoints link to each other; all of the service where nothing is linked. Others than those that
    make jobs are only looked at if none does.
    """
    ids, wanted = {share.id for share in shares}, {each for share in shares for each in share.endpoints}
    linked = [each for each in service.endpoints if each.id in wanted or ids & set(each.shares)]
    for found in (linked, service.endpoints):
        if making := [each for each in found if _makes_jobs(each)]:
            return sorted(making, key=_worth)
    return sorted(linked or service.endpoints, key=_worth)


def serving_state(shares: Sequence[Share], endpoints: Sequence[Endpoint]) -> str:
    """Return the state of a queue: the worse of its share's own, and of the best of the endpoints to it."""
    own = min(shares, key=lambda share: (bool(share.rules), share.id)).serving_state
    best = min((_state(each) for each in endpoints), key=_rank, default="")
    # One that says nothing leaves the word to the other.
    return max((own, best), key=lambda state: (_rank(state), bool(state)))


def manager_of(service: Service, shares: Sequence[Share]) -> Manager:
    """Return the manager whose machines shares use; the first of the service where none is linked."""
    used = {each.manager for each in environments_of(service, shares)}
    linked = [each for each in service.managers if each.id in used]
    return next(iter([*linked, *service.managers]), Manager(id=""))


def environments_of(service: Service, shares: Sequence[Share]) -> list[Environment]:
    """Return the environments that shares and they link to each other."""
    ids, wanted = {share.id for share in shares}, {each for share in shares for each in share.environments}
    return [each for each in service.environments if each.id in wanted or ids & set(each.shares)]


def host_of(url: str) -> str:
    """Return the host, and the port, of a URL."""
    return url.partition("://")[2].partition("/")[0]


def _makes_jobs(endpoint: Endpoint) -> bool:
    return endpoint.interface_name in PREFERRED or CREATION in endpoint.capabilities


def _worth(endpoint: Endpoint) -> tuple[int, bool, int]:
    name = endpoint.interface_name
    preference = PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)
    return _rank(_state(endpoint)), endpoint.health_state in ("warning", "unknown", "other"), preference


def _state(endpoint: Endpoint) -> str:
    """Return whether an endpoint takes jobs: one whose health is critical does not, whatever it says besides."""
    return "closed" if endpoint.health_state == "critical" else endpoint.serving_state


def _rank(state: str) -> int:
    return _STATES.index(state) if state in _STATES else 0
