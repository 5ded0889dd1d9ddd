"""The endpoints of a service that accept the jobs of a share, and the serving state of a queue.

A share publishes whether its queue accepts jobs, an endpoint whether the service does. ARC always publishes `production` for
its shares, and `draining` for its endpoints. Both states count.
"""

from collections.abc import Sequence

from wms.glue.glue2 import Endpoint, Environment, Manager, Service, Share

PREFERRED = ("org.nordugrid.arcrest", "org.ogf.glue.emies.activitycreation")
CREATION = "executionmanagement.jobcreation"
_STATES = ("production", "queueing", "draining", "closed")
"""Serving states, the best first. An unpublished state counts as `production`."""


def endpoints_of(service: Service, shares: Sequence[Share]) -> list[Endpoint]:
    """Return the endpoints that accept jobs for the shares, the best first: by serving state, then by preferred interface.

    They are those endpoints linked to the shares that create jobs; without any, those of the service that do. If none creates jobs,
    all linked endpoints are returned, or all of the service.
    """
    ids, wanted = {share.id for share in shares}, {each for share in shares for each in share.endpoints}
    linked = [each for each in service.endpoints if each.id in wanted or ids & set(each.shares)]
    for found in (linked, service.endpoints):
        if making := [each for each in found if _makes_jobs(each)]:
            return sorted(making, key=_worth)
    return sorted(linked or service.endpoints, key=_worth)


def serving_state(shares: Sequence[Share], endpoints: Sequence[Endpoint]) -> str:
    """Return the serving state of a queue: the worse one of its share's state and the best state among its endpoints."""
    own = min(shares, key=lambda share: (bool(share.rules), share.id)).serving_state
    best = min((_state(each) for each in endpoints), key=_rank, default="")
    # One that says nothing leaves the word to the other.
    return max((own, best), key=lambda state: (_rank(state), bool(state)))


def manager_of(service: Service, shares: Sequence[Share]) -> Manager:
    """Return the manager (batch system) whose machines the shares use.

    If none is linked to the shares, return the first manager of the service. If the service has none, return an empty record.
    """
    used = {each.manager for each in environments_of(service, shares)}
    linked = [each for each in service.managers if each.id in used]
    return next(iter([*linked, *service.managers]), Manager(id=""))


def environments_of(service: Service, shares: Sequence[Share]) -> list[Environment]:
    """Return the execution environments that are linked to the shares, in either direction."""
    ids, wanted = {share.id for share in shares}, {each for share in shares for each in share.environments}
    return [each for each in service.environments if each.id in wanted or ids & set(each.shares)]


def host_of(url: str) -> str:
    """Return the host of a URL, with its port if it has one."""
    return url.partition("://")[2].partition("/")[0]


def _makes_jobs(endpoint: Endpoint) -> bool:
    return endpoint.interface_name in PREFERRED or CREATION in endpoint.capabilities


def _worth(endpoint: Endpoint) -> tuple[int, bool, int]:
    name = endpoint.interface_name
    preference = PREFERRED.index(name) if name in PREFERRED else len(PREFERRED)
    return _rank(_state(endpoint)), endpoint.health_state in ("warning", "unknown", "other"), preference


def _state(endpoint: Endpoint) -> str:
    """Return the serving state of an endpoint; `closed` if its health is critical."""
    return "closed" if endpoint.health_state == "critical" else endpoint.serving_state


def _rank(state: str) -> int:
    return _STATES.index(state) if state in _STATES else 0
