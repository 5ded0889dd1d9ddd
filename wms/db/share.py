"""Shares of groups in the database: from the configuration file or set at run time, which overrides the file."""

from collections.abc import Mapping

import asyncpg
import msgspec

from wms.auth.principal import Principal
from wms.db.database import Transaction
from wms.db.sql import load
from wms.matching.shares import GroupShare, VoGroup
from wms.messages import changes

SQL = load(__file__)


class SourcedShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a group and its source: `source` is "set", "file" or "default"."""

    share: GroupShare
    source: str
    said_by: str = ""
    """The user who set the share; empty for other sources."""


NOTHING_SAID = SourcedShare(share=GroupShare(), source="default")
"""The share of a group that neither the file nor an operator gave one."""


async def said(tx: Transaction) -> dict[VoGroup, SourcedShare]:
    """Return the share in force of each group that has one."""
    return {
        (row["vo"], row["owner_group"]): SourcedShare(
            share=_share(row), source=row["source"], said_by=row["said_by"]
        )
        for row in await tx.fetch(SQL["read"])
    }


def _share(row: asyncpg.Record) -> GroupShare:
    return GroupShare(**{name: row[name] for name in GroupShare.__struct_fields__})


async def acting(tx: Transaction, principal: Principal) -> Principal:
    """Return the principal with the current job-sharing setting of its group."""
    shared = bool(await tx.fetchval(SQL["is_shared"], principal.vo, principal.group))
    return msgspec.structs.replace(principal, shares_jobs=shared)


async def set_share(tx: Transaction, group: VoGroup, share: GroupShare, said_by: str) -> None:
    """Set a group's share, which overrides the file, and notify the matchers."""
    await tx.execute(SQL["set"], *group, *msgspec.structs.astuple(share), said_by)
    tell_changed(tx)


async def reset(tx: Transaction, group: VoGroup) -> bool:
    """Delete a group's share that was set at run time, so that the file's is in force; return whether one was set."""
    was_set = bool(await tx.execute(SQL["reset"], *group))
    tell_changed(tx)
    return was_set


async def write_file(tx: Transaction, shares: Mapping[VoGroup, GroupShare]) -> None:
    """Replace the stored shares of the file by these, and notify the matchers if anything changed."""
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


async def standing(tx: Transaction, vo: str | None) -> list[asyncpg.Record]:
    """Return the number of waiting and running jobs of each owner in a VO, or in all if None."""
    return await tx.fetch(SQL["standing"], vo)


def tell_changed(tx: Transaction) -> None:
    """Notify the matchers that shares or limits changed, so that they read them again."""
    tx.send(changes.TOPIC, "", changes.RulesChanged())
