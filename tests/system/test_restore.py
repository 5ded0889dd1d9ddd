"""After the restore of an older dump nobody's job is touched: what was ordered since is kept aside, listed, and taken in by one command."""

import json
from functools import partial
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.conftest import execute, with_database
from tests.system.place import Place, place
from tests.system.test_cli import Shell
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select

__all__ = ["place"]

OWNERS = ("ann", "bob", "cleo", "dan", "eve")
LOOKED_AT = "an operator has looked at every gap in a log"


async def submit(place: Place, owner: str, name: str, count: int) -> list[int]:
    async with Client.connect(place.settings(owner)) as client:
        jobs = [JobDescription(executable="true", name=f"{name}-{owner}-{n}") for n in range(count)]
        return list((await client.submit(jobs)).job_ids())


async def kill(place: Place, owner: str, job_id: int) -> int:
    async with Client.connect(place.settings(owner)) as client:
        return (await client.kill(select(str(job_id)))).changed


async def jobs(place: Place) -> dict[int, tuple[str, str, str]]:
    """Return owner, name and state of each job."""
    connection = await asyncpg.connect(place.postgres)
    try:
        rows = await connection.fetch("select job_id, owner, name, state from job")
        return {row["job_id"]: (row["owner"], row["name"], row["state"]) for row in rows}
    finally:
        await connection.close()


class Dump:
    """A copy of the database, from which it is restored."""

    def __init__(self, place: Place, server: str) -> None:
        self._name = urlsplit(place.postgres).path.strip("/")
        self._server = server

    async def make(self) -> None:
        await execute(self._server, f'create database "{self._name}_dump" template "{self._name}"')

    async def restore(self) -> None:
        await execute(self._server, f'drop database "{self._name}" with (force)')
        await execute(self._server, f'create database "{self._name}" template "{self._name}_dump"')

    async def drop(self) -> None:
        await execute(self._server, f'drop database "{self._name}_dump" with (force)')


async def broken(place: Place) -> list[str]:
    return [check.name for check in (await audit(place.postgres)).checks if check.violations]


@pytest.mark.timeout(240)
async def test_a_restored_database_obeys_nothing_that_it_has_forgotten(
    place: Place, postgres_server: str
) -> None:
    before = {owner: await submit(place, owner, "old", 3) for owner in OWNERS}
    await place.stop()
    dump = Dump(place, with_database(postgres_server, "postgres"))
    await dump.make()
    at_dump = await jobs(place)
    await place.start()
    after = {owner: await submit(place, owner, "new", 2) for owner in reversed(OWNERS)}
    for owner in OWNERS:
        assert await kill(place, owner, before[owner][0]) == 1
        assert await kill(place, owner, after[owner][0]) == 1
    await place.stop()
    await dump.restore()

    await place.start()
    shell = Shell(place, "operator")
    await eventually(partial(all_is_kept, shell), 60)
    assert await jobs(place) == at_dump
    assert await broken(place) == [LOOKED_AT]
    await shell.run("status")
    assert "restored, sent between" in shell.out

    # An id that a user remembers is no other job's.
    fresh = await submit(place, "ann", "fresh", 1)
    assert min(fresh) > max(id_ for ids in after.values() for id_ in ids)
    assert await kill(place, "eve", after["eve"][0]) == 0
    assert await jobs(place) == at_dump | {fresh[0]: ("ann", "fresh-ann-0", "Waiting")}

    gaps = [str(gap["log_gap_id"]) for gap in await listed(shell)]
    assert await shell.run("log-gaps", "show", *gaps) == 0
    assert all(shell.out.count(owner) >= 3 for owner in OWNERS)
    assert await shell.run("log-gaps", "acknowledge", *gaps, "--reason", "no look") != 0
    assert await shell.run("log-gaps", "drop", *gaps, "--sender", "eve", "--reason", "she said so") == 1
    assert await shell.run("log-gaps", "take-in", *gaps) == 0, shell.err
    await eventually(partial(was_taken_in, place), 60)
    now = await jobs(place)
    for owner in OWNERS:
        was_dropped = owner == "eve"
        states = [now[job_id][2] for job_id in before[owner]]
        assert states == ["Waiting" if was_dropped else "Killed", "Waiting", "Waiting"]
        names = [name for _, name, state in now.values() if name.startswith(f"new-{owner}")]
        assert len(names) == (0 if was_dropped else 2)
    # What was killed under an id of the past is under another one now, and nobody else's was hit.
    assert {state for _, name, state in now.values() if not name.startswith("old")} == {"Waiting"}
    assert await broken(place) == []
    await dump.drop()


async def listed(shell: Shell) -> list[dict[str, object]]:
    assert await shell.run("log-gaps", "--json") == 0, shell.err
    return [json.loads(line) for line in shell.out.splitlines()]


async def all_is_kept(shell: Shell) -> bool:
    gaps = await listed(shell)
    assert not any(gap["is_read"] for gap in gaps)
    # Clients that wait too long on a busy machine send again.
    return sum(int(str(gap["kept"])) for gap in gaps) >= 3 * len(OWNERS)


async def was_taken_in(place: Place) -> bool:
    connection = await asyncpg.connect(place.postgres)
    try:
        return bool(await connection.fetchval("select bool_and(replayed_at is not null) from dead_letter"))
    finally:
        await connection.close()
