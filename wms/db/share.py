"""Shares of groups, to which fair share entitles them, in the database. The configuration file or an operator sets them."""

from collections.abc import Mapping

import asyncpg
import msgspec

from wms.auth.principal import Principal
from wms.db.database import Transaction
from wms.db.sql import load
from wms.matching.shares import GroupShare, VoGroup
from wms.messages import queue_changes

SQL = load(__file__)


class SourcedShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a group and where it comes from: `source` is "set" (at run time), "file" or "default"."""

    share: GroupShare
    source: str
    said_by: str = ""
    """The operator who set the share; empty for other sources."""


NOTHING_SAID = SourcedShare(share=GroupShare(), source="default")
"""The share of a group to which neither the matcher's configuration file nor an operator gave one."""


async def sourced(tx: Transaction) -> dict[VoGroup, SourcedShare]:
    """Return the share that applies to each group for which the file or an operator gave one."""
    return {
        (row["vo"], row["owner_group"]): SourcedShare(
            share=_share(row), source=row["source"], said_by=row["said_by"]
        )
        for row in await tx.fetch(SQL["read"])
    }


def _share(row: asyncpg.Record) -> GroupShare:
    return GroupShare(**{name: row[name] for name in GroupShare.__struct_fields__})


async def acting(tx: Transaction, principal: Principal) -> Principal:
    """Return the principal with `shares_jobs` set by the present policy of its group."""
    shared = bool(await tx.fetchval(SQL["is_shared"], principal.vo, principal.group))
    return msgspec.structs.replace(principal, shares_jobs=shared)


async def set_share(tx: Transaction, group: VoGroup, share: GroupShare, said_by: str) -> None:
    """Set a group's share, which overrides the file's, and tell the matchers. `said_by` is the operator."""
    await tx.execute(SQL["set"], *group, *msgspec.structs.astuple(share), said_by)
    tell_changed(tx)


async def reset(tx: Transaction, group: VoGroup) -> bool:
    """Delete the share that an operator set for a group, so that the file's applies again, and tell the matchers.

    Return whether there was one.
    """
    was_set = bool(await tx.execute(SQL["reset"], *group))
    tell_changed(tx)
    return was_set


async def replace_configured(tx: Transaction, shares: Mapping[VoGroup, GroupShare]) -> None:
    """Replace the stored shares of the configuration file by these, and tell the matchers if any changed."""
    columns = [
        [vo for vo, _ in shares],
        [group for _, group in shares],
        [share.job_share for share in shares.values()],
        [share.job_sharing for share in shares.values()],
        [share.background for share in shares.values()],
        [share.private_pilots for share in shares.values()],
    ]
    dropped = await tx.execute(SQL["drop_file"], *columns)
    written = await tx.execute(SQL["write_file"], *columns)
    if dropped or written:
        tell_changed(tx)


async def standing(tx: Transaction, vo: str | None, *, watched: bool) -> list[asyncpg.Record]:
    """Return a row for each owner with waiting or running jobs: the numbers of both. `vo` restricts them to a VO; None: all.

    If `watched`, the waiting jobs come from a matcher's statistics; otherwise they are counted.
    """
    return await tx.fetch(SQL["standing"], vo, watched)


def tell_changed(tx: Transaction) -> None:
    """Send the matchers a message that shares or limits changed, so that they read them again."""
    tx.send(queue_changes.TOPIC, "", queue_changes.RulesChanged())
