"""Running instances (processes) of services in the database, among which the partitions of each consumer are divided."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from wms.db.database import Transaction
from wms.db.sql import load
from wms.ids import InstanceId
from wms.messages.ads import AdvertiserState

SQL = load(__file__)

DEAD_AFTER_SECONDS = 5.0
"""Seconds without a heartbeat after which an instance counts as dead and loses its partitions."""

ADVERTISER = "advertiser"
ADVERTISER_SILENT_SECONDS = 30.0
"""Seconds without a heartbeat after which an advertiser counts as dead. Its heartbeats come as messages, and less often."""

FORGOTTEN_AFTER_SECONDS = 3_600.0
"""Seconds without a heartbeat after which the row of an instance is deleted."""


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """One heartbeat of a service instance: who it is, where it runs, and which consumers it runs."""

    instance_id: InstanceId
    service: str
    consumers: Sequence[str]
    host: str
    pid: int
    version: str
    health: str
    """The health of the instance as JSON."""


def new_id(service: str) -> InstanceId:
    """Return an id for one more instance of a service, which no other instance has."""
    return InstanceId(f"{service}-{uuid.uuid4().hex[:12]}")


async def beat(tx: Transaction, instance: Beat) -> dict[str, list[InstanceId]]:
    """Store a heartbeat. Return the live instances of each consumer, by its name, in the same order for all callers."""
    await tx.execute(SQL["beat"], *msgspec.structs.astuple(instance))
    return await live(tx)


async def hear(tx: Transaction, states: Mapping[str, AdvertiserState]) -> None:
    """Store the heartbeats of advertisers, by the owners in their tokens. Each owner has one row, so that none can write that of another."""
    owners = sorted(states)
    told = [states[owner] for owner in owners]
    await tx.execute(
        SQL["hear"],
        ADVERTISER,
        [f"{ADVERTISER}/{owner}" for owner in owners],
        [each.host for each in told],
        [each.pid for each in told],
        [each.version for each in told],
        [_health(owner, states[owner]) for owner in owners],
    )


def _health(owner: str, state: AdvertiserState) -> str:
    troubles = {each.loop: each.text for each in state.troubles}
    return msgspec.json.encode({"owner": owner, "troubles": troubles}).decode()


async def live(tx: Transaction) -> dict[str, list[InstanceId]]:
    """Return the live instances of each consumer, by its name, in the same order for all callers."""
    rows = await tx.fetch(SQL["sharers"], DEAD_AFTER_SECONDS)
    return {row["consumer"]: row["instances"] for row in rows}


async def end_silent(tx: Transaction) -> Counter[str]:
    """End the open transactions of instances that count as dead, so that nobody waits for their locks.

    Only instances with the caller's Postgres role are concerned, whose connections are named by their ids. Return the number of ended
    transactions, by the id of their instance.
    """
    rows = await tx.fetch(SQL["end_silent"], DEAD_AFTER_SECONDS)
    return Counter(row["instance_id"] for row in rows if row["ended"])


async def leave(tx: Transaction, instance_id: InstanceId) -> None:
    """Delete an instance that stops, so that others take its partitions. Also delete instances without a heartbeat for an hour."""
    await tx.execute(SQL["leave"], instance_id)
    await tx.execute(SQL["forget"], FORGOTTEN_AFTER_SECONDS)


async def instances(tx: Transaction) -> list[asyncpg.Record]:
    """Return the rows of all stored service instances, dead ones included."""
    return await tx.fetch(SQL["all"], DEAD_AFTER_SECONDS, ADVERTISER, ADVERTISER_SILENT_SECONDS)
