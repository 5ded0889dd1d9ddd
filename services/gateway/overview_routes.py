"""Routes of overviews: the identity and rights of the sender, the progress of jobs, the state of the system, and resource usage."""

from datetime import datetime
from typing import Annotated, Final, get_args

import msgspec

from services.gateway.job_routes import Words
from services.gateway.operation import NoParameters
from services.gateway.route import Requester, Route
from services.gateway.site_routes import Page
from wms.errors import Rejected
from wms.messages import queries as asked
from wms.messages import replies


class ProgressList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter of a progress report: the most job groups and job arrays to return."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=asked.PAGE_LIMIT)] = 100


class UsageSum(Page, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of sums of what attempts used."""

    by: Words = ""
    """What to group the sums by, separated by commas: vo, group, owner, site, month, day. Empty: one sum of everything."""
    since: datetime
    """Only attempts that ended at or after this time, which must have a zone. It is rounded down to the full hour."""
    until: datetime | None = None


def _show_usage(sender: Requester, given: UsageSum) -> asked.ShowUsage:
    if any(each is not None and each.tzinfo is None for each in (given.since, given.until)):
        raise Rejected("BAD_PARAMETER", "a time has no zone", "write 2026-01-31T12:00:00Z")
    return asked.ShowUsage(
        query_id=sender.id,
        client=sender.client,
        by=tuple(map(_property, filter(None, given.by.split(",")))),
        since=given.since,
        until=given.until,
        after=given.after,
        limit=given.limit,
    )


def _property(name: str) -> asked.UsageBy:
    known: tuple[asked.UsageBy, ...] = get_args(asked.UsageBy)
    for each in known:
        if each == name.strip():
            return each
    raise Rejected("BAD_PARAMETER", "usage is not summed up by that", f"one of {', '.join(known)}")


def _who_am_i(sender: Requester, _: NoParameters) -> asked.WhoAmI:
    return asked.WhoAmI(query_id=sender.id, client=sender.client)


def _show_overview(sender: Requester, _: NoParameters) -> asked.ShowOverview:
    return asked.ShowOverview(query_id=sender.id, client=sender.client)


def _show_progress(sender: Requester, given: ProgressList) -> asked.ShowProgress:
    return asked.ShowProgress(query_id=sender.id, client=sender.client, limit=given.limit)


ROUTES: Final = (
    Route(
        method="GET",
        path="/whoami",
        summary="The sender as the system sees it: identity, rights and the end of the token",
        message=_who_am_i,
        answer=replies.WhoYouAre,
    ),
    Route(
        method="GET",
        path="/progress",
        summary="How far job groups and sweeps are, and how many of their jobs ended lately",
        parameters=ProgressList,
        message=_show_progress,
        answer=replies.Progress,
    ),
    Route(
        method="GET",
        path="/overview",
        summary="What ended within the last hour and how, why jobs wait, which pilots died, how the services are",
        message=_show_overview,
        answer=replies.Overview,
    ),
    Route(
        method="GET",
        path="/usage",
        summary="What ended attempts used, and what of it was wasted, by owner, site and time",
        parameters=UsageSum,
        message=_show_usage,
        answer=replies.UsageReport,
    ),
)
