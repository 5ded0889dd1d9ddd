"""Routes of fair shares of groups, limits on jobs, and the accuracy of the broker's predictions."""

from typing import Final, Literal

import msgspec

from services.gateway.route import Requester, Route
from services.gateway.site_routes import Page, paged
from wms.bounds import GivenName, ShareOfGroup
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies
from wms.messages.limits import CounterKey, Kind, Limit


class OneGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters in the path of requests about one group: its VO (virtual organisation) and its name."""

    vo: GivenName
    group: GivenName


class ShareSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body with new values of a group's fair share. Values that are absent stay as they are."""

    job_share: ShareOfGroup | None = None
    job_sharing: bool | None = None
    background: bool | None = None
    private_pilots: bool | None = None


class LimitDrop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that names a limit to lift, by its kind and key. With `reset`, the limit of the configuration file applies again instead."""

    kind: Kind
    key: CounterKey
    reset: bool = False


class PredictionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter of a table of predictions: `by` says whether its rows are by site, by predictor or by both."""

    by: Literal["site", "predictor", "both"] = "both"


def _set_share(sender: Requester, given: OneGroup, setting: ShareSetting) -> ordered.SetShare:
    return ordered.SetShare(
        command_id=CommandId(sender.id),
        vo=given.vo,
        owner_group=given.group,
        client=sender.client,
        **msgspec.structs.asdict(setting),
    )


def _drop_limit(sender: Requester, _: msgspec.Struct, drop: LimitDrop) -> ordered.DropLimit:
    return ordered.DropLimit(
        command_id=CommandId(sender.id), kind=drop.kind, key=drop.key, reset=drop.reset, client=sender.client
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/shares",
        summary="The shares and the use of the groups of your VO",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListShares, sender, given),
        answer=replies.Shares,
    ),
    Route(
        method="PUT",
        path="/shares/{vo}/{group}",
        summary="Set the share of a group, until it is reset (administrators)",
        parameters=OneGroup,
        body=ShareSetting,
        message=_set_share,
        answer=replies.Ruled,
    ),
    Route(
        method="DELETE",
        path="/shares/{vo}/{group}",
        summary="Let the configured share of a group hold again (administrators)",
        parameters=OneGroup,
        message=lambda sender, given: ordered.ResetShare(
            command_id=CommandId(sender.id), vo=given.vo, owner_group=given.group, client=sender.client
        ),
        answer=replies.Ruled,
    ),
    Route(
        method="GET",
        path="/limits",
        summary="The limits in force, with the used amount of each",
        parameters=Page,
        message=lambda sender, given: paged(asked.ListLimits, sender, given),
        answer=replies.LimitList,
    ),
    Route(
        method="PUT",
        path="/limits",
        summary="Set a limit, until it is lifted or reset (operators)",
        body=Limit,
        message=lambda sender, _, limit: ordered.SetLimit(
            command_id=CommandId(sender.id), limit=limit, client=sender.client
        ),
        answer=replies.Ruled,
    ),
    Route(
        method="POST",
        path="/limits/drop",
        summary="Lift a limit, or let the configured one hold again (operators)",
        body=LimitDrop,
        message=_drop_limit,
        answer=replies.Ruled,
    ),
    Route(
        method="GET",
        path="/predictions",
        summary="How true the broker's predictions were",
        parameters=PredictionTable,
        message=lambda sender, given: asked.ListPredictions(
            query_id=sender.id, client=sender.client, by=given.by
        ),
        answer=replies.Calibrations,
    ),
)
