"""Carries out administrators' orders on shares, limits, sites and dead letters, and users' orders on private pilots and reservations."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from services.job_manager import (
    audit_trail,
    dead_letter_orders,
    pilot_orders,
    repeated_orders,
    reservation_orders,
    revocation_orders,
    site_orders,
)
from services.job_manager.maintenance.canaries import Canaries
from services.job_manager.refusals import refuse
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import limit, share
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.matching.limits import LimitKey, LimitRule, compared
from wms.matching.shares import GroupShare, VoGroup
from wms.messages import replies
from wms.messages.commands import (
    CancelReservations,
    DropDeadLetters,
    DropLimit,
    ReplayDeadLetters,
    ResetShare,
    Revoke,
    Rule,
    RuleSite,
    SetLimit,
    SetShare,
    SkipMessage,
    StartPilots,
    StopPilots,
)

Said: TypeAlias = str
"""The new state after an order, as text for the person who gave the order."""


class OrderResult(msgspec.Struct, frozen=True):
    """The result of an order. `said` is the new state in words; `jobs` are the ids of the canaries (test jobs) that were sent."""

    said: Said
    jobs: tuple[int, ...] = ()


class AdminOrders:
    """Carries out orders. `canaries` sends the test jobs of site tests. Messages are skipped on the Kafka cluster with the id `cluster_id`."""

    def __init__(self, canaries: Canaries, cluster_id: str) -> None:
        self._canaries = canaries
        self._cluster_id = cluster_id

    async def carry_out(self, tx: Transaction, principal: Principal, rule: Rule) -> None:
        """Carry out an order in this transaction and send its answer to the sender's inbox.

        `rule` is the order. If its command id was used before for the same order, only the answer is sent again. A refused order changes
        nothing; the answer says why.
        """
        try:
            before = await repeated_orders.earlier(tx, principal, rule)
            ruled = _decoded(before.answer) if before else await self._rule(tx, principal, rule)
        except Rejected as fault:
            await audit_trail.refused(tx, principal, rule, fault)
            refuse(tx, principal.owner, rule.command_id, rule.client, fault)
            return
        if before is None:
            await audit_trail.carried_out(tx, principal, rule, ruled.said)
            await repeated_orders.remember(tx, principal, rule, ruled)
        answer = replies.Ruled(
            command_id=rule.command_id,
            client=rule.client,
            said=ruled.said,
            repeated=before is not None,
            jobs=ruled.jobs,
        )
        tx.send(*replies.address(principal.owner, rule.client), answer)

    async def _rule(self, tx: Transaction, principal: Principal, rule: Rule) -> OrderResult:
        if isinstance(rule, SkipMessage):
            return OrderResult(await dead_letter_orders.skip(tx, principal, rule, self._cluster_id))
        if isinstance(rule, RuleSite):
            return OrderResult(*await site_orders.carry_out(tx, principal, rule, self._canaries))
        carry_out: Callable[[Transaction, Principal, Any], Awaitable[Said]] = _RULES[type(rule)]
        return OrderResult(await carry_out(tx, principal, rule))


def _decoded(answer: str) -> OrderResult:
    """Return the earlier result of an order; older versions stored only its words."""
    found = msgspec.json.decode(answer, type=str | OrderResult)
    return OrderResult(found) if isinstance(found, str) else found


async def _set_share(tx: Transaction, principal: Principal, rule: SetShare) -> Said:
    group = _ruled_by(principal, rule)
    wanted = {
        name: value for name in GroupShare.__struct_fields__ if (value := getattr(rule, name)) is not None
    }
    if not wanted:
        raise Rejected(
            "NOTHING_SAID",
            "nothing is said of the share",
            "give a number, --job-sharing, --background or --private-pilots",
        )
    held = (await share.sourced(tx)).get(group, share.NOTHING_SAID)
    new = msgspec.structs.replace(held.share, **wanted)
    await share.set_share(tx, group, new, principal.owner)
    return _in_words(group, new)


async def _reset_share(tx: Transaction, principal: Principal, rule: ResetShare) -> Said:
    group = _ruled_by(principal, rule)
    if not await share.reset(tx, group):
        raise Rejected(
            "NOT_SET", f"no share of {'/'.join(group)} was set at run time", "`wms shares` shows what holds"
        )
    held = (await share.sourced(tx)).get(group, share.NOTHING_SAID)
    return f"{_in_words(group, held.share)}, as the {'file says' if held.source == 'file' else 'default is'}"


def _ruled_by(principal: Principal, rule: SetShare | ResetShare) -> VoGroup:
    """Return the group whose shares an order changes. Raise Rejected if the principal may not change them."""
    if not allowed(principal, "set_shares", "", rule.owner_group, rule.vo):
        raise Rejected(
            "NOT_ALLOWED",
            f"you have no right to set shares in VO {rule.vo}",
            "its administrators and the operators have: rights job_administrator, operator",
        )
    return rule.vo, rule.owner_group


def _in_words(group: VoGroup, held: GroupShare) -> Said:
    shared = "its members share their jobs" if held.job_sharing else "divided by its owners"
    background = ", with background queues" if held.background else ""
    own = ", with private pilots" if held.private_pilots else ""
    return f"{'/'.join(group)} has a share of {held.job_share:g}, {shared}{background}{own}"


async def _set_limit(tx: Transaction, principal: Principal, rule: SetLimit) -> Said:
    _check_operator(principal)
    wanted = LimitRule(**msgspec.structs.asdict(rule.limit))
    if fault := wanted.fault():
        raise Rejected("BAD_LIMIT", fault, "`wms limits --help` has examples")
    await limit.set_limit(tx, wanted, principal.owner)
    return wanted.text()


async def _drop_limit(tx: Transaction, principal: Principal, rule: DropLimit) -> Said:
    _check_operator(principal)
    key = compared(LimitKey(*rule.key))
    named = f"{key.text()}: limit on {'rate' if rule.kind == 'rate' else f'{rule.kind} jobs'}"
    held = {(each.limit.kind, each.limit.key): each for each in await limit.sourced(tx)}.get((rule.kind, key))
    if held is None or (rule.reset and held.source != "set") or (not rule.reset and held.lifted):
        what = "was not set at run time" if rule.reset else "does not exist"
        raise Rejected("NOT_SET", f"{named} {what}", "`wms limits` shows what holds")
    if rule.reset:
        await limit.reset(tx, rule.kind, key)
        configured = {(each.limit.kind, each.limit.key): each.limit for each in await limit.sourced(tx)}
        left = configured.get((rule.kind, key))
        return f"{left.text()}, as configured" if left else f"{named} removed; none is configured"
    await limit.lift(tx, rule.kind, key, principal.owner)
    return f"{named} is lifted"


def _check_operator(principal: Principal) -> None:
    if not allowed(principal, "administer", "", "", ""):
        raise Rejected("NOT_ALLOWED", "you have no right to set limits", "operators have: right operator")


_RULES: dict[type[Any], Any] = {
    SetShare: _set_share,
    ResetShare: _reset_share,
    SetLimit: _set_limit,
    DropLimit: _drop_limit,
    StartPilots: pilot_orders.start,
    StopPilots: pilot_orders.stop,
    CancelReservations: reservation_orders.cancel,
    Revoke: revocation_orders.carry_out,
    ReplayDeadLetters: dead_letter_orders.replay,
    DropDeadLetters: dead_letter_orders.drop,
}
