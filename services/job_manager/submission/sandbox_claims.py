"""To which archives of the sandbox store a user's descriptions may refer: those that the user sent whole, in the same group and VO.

The store keeps equal archives once. So a digest alone would be enough to have a job read what another user sent. A gateway notes who
sent what. Whoever sends messages to Kafka writes to the store itself: these messages are believed, and what they refer to is noted.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from wms.db import sandbox
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.ids import Identity
from wms.jobdesc.array import ARCHIVE
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.replies import GATEWAY_CLIENT

_DIGITS: Final = 64


async def check(tx: Transaction, identity: Identity, client: str, digests: Collection[str]) -> None:
    """Raise Rejected if a message of this owner refers to archives that the owner has not sent. `client` is where its answer goes."""
    for missing in await _missing(tx, identity, client, digests):
        raise not_sent(f"the archive {missing}")


def not_sent(what: str) -> Rejected:
    """Return, not raise, the error for input files that this owner has not sent."""
    return Rejected(
        "SANDBOX_NOT_SENT",
        f"its input files: {what} was not sent with a token of your name, group and VO",
        "send the files again: their digest alone does not show that they are yours",
    )


def referred(descriptions: Iterable[JobDescription]) -> set[str]:
    """Return the digests of the archives to which descriptions refer, but for those in long lists of parameters."""
    found: set[str] = set()
    for each in descriptions:
        found.update(digests_of(each.input_sandbox))
        for name in each.input_parameters:
            found.update(value[:_DIGITS] for value in each.parameters.get(name, ()))
    return found


def digests_of(archives: Iterable[SandboxRef]) -> set[str]:
    """Return the digests of archives."""
    return {each.sha256 for each in archives}


async def unclaimed_lists(
    tx: Transaction, identity: Identity, client: str, lists: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Return the names of those lists of parameters that refer to an archive which this owner has not sent."""
    archives = {
        name: {value[:_DIGITS] for value in values}
        for name, values in lists.items()
        if all(map(ARCHIVE.fullmatch, values))
    }
    missing = await _missing(tx, identity, client, set().union(*archives.values()))
    return frozenset(name for name, digests in archives.items() if not digests.isdisjoint(missing))


async def _missing(
    tx: Transaction, identity: Identity, client: str, digests: Collection[str]
) -> Collection[str]:
    if not digests:
        return ()
    if client.startswith(GATEWAY_CLIENT):
        return await sandbox.unclaimed(tx, identity, digests)
    await sandbox.claim(tx, identity, digests)
    return ()
