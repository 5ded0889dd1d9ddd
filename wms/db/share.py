"""Shares in the database: those of the configuration file, those set at run time, and which of the two holds."""

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
    """A share and its source: `source` is "set", "file" or "default"."""

    share: GroupShare
    source: str
    said_by: str = ""


NOTHING_SAID = SourcedShare(share=GroupShare(), source="default")


async def said(tx: Transaction) -> dict[VoGroup, SourcedShare]:
    """Return the share of each group that has one."""
    return {
        (row["vo"], row["owner_group"]): SourcedShare(
            share=_share(row), source=row["source"], said_by=row["said_by"]
        )
        for row in await tx.fetch(SQL["read"])
    }


def _share(row: asyncpg.Record) -> GroupShare:
    return GroupShare(**{name: row[name] for name in GroupShare.__struct_fields__})


async def acting(tx: Transaction, principal: Principal) -> Principal:
    """Return the principal with the job-sharing setting of its group."""
    shared = bool(await tx.fetchval(SQL["is_shared"], principal.vo, principal.group))
    return msgspec.structs.replace(principal, shares_jobs=shared)


async def set_share(tx: Transaction, group: VoGroup, share: GroupShare, said_by: str) -> None:
    """Set a share, which overrides the file, and tell the matchers."""
    await tx.execute(SQL["set"], *group, *msgspec.structs.astuple(share), said_by)
    tell_changed(tx)


async def reset(tx: Transaction, group: VoGroup) -> bool:
    """Return to the file's share; return whether another held."""
    was_set = bool(await tx.execute(SQL["reset"], *group))
    tell_changed(tx)
    return was_set


async def write_file(tx: Transaction, shares: Mapping[VoGroup, GroupShare]) -> None:
    """Store all shares of the file, and tell the matchers if they changed."""
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
    """Return the waiting and running jobs of each owner of a VO, or of all."""
    return await tx.fetch(SQL["standing"], vo)


def tell_changed(tx: Transaction) -> None:
    """Tell the matchers to read shares and limits again."""
    tx.send(changes.TOPIC, "", changes.RulesChanged())
