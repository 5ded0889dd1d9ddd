"""Parsing processes: what they return and refuse, and that the death of one is an answer to its sender alone."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.unit.parsing import documents
from wms.errors import Rejected, Unavailable
from wms.parsing import parser_pool
from wms.parsing.parser_pool import ParserPool


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ParserPool]:
    pool = ParserPool(documents.__name__, processes=2, memory_bytes=256 * 1024**2)
    running = asyncio.create_task(pool.run())
    await asyncio.sleep(0)
    yield pool
    running.cancel()
    await asyncio.wait([running])
    assert not pool._all


async def pid(pool: ParserPool, owner: str = "alice") -> int:
    return int((await pool.parse(owner, documents.echoed))[-1])


async def test_a_process_serves_one_document_after_the_other(pool: ParserPool) -> None:
    *arguments, first = await pool.parse("alice", documents.echoed, b"one", b"", bytes(200_000))
    assert arguments == [b"one", b"", bytes(200_000)]
    assert int(first) not in {os.getpid(), 0}
    assert await pool.parse("alice", documents.printed, b"") == [b"done"]
    assert await pid(pool, "bob") == int(first)


async def test_no_limit_of_time_is_left_for_the_next_document(pool: ParserPool) -> None:
    process = psutil.Process(await pid(pool))
    assert process.rlimit(psutil.RLIMIT_CPU)[0] == process.rlimit(psutil.RLIMIT_CPU)[1]


async def test_what_a_parser_refuses_is_told_whole(pool: ParserPool) -> None:
    with pytest.raises(Rejected) as told:
        await pool.parse("alice", documents.refused, b"")
    assert told.value.args == ("BAD", "is bad", "mend it", ("line 1", "line 2"))


async def test_too_much_time_memory_or_a_crash_is_an_answer_and_harms_nobody_else(
    pool: ParserPool, tmp_path: Path
) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    innocent = asyncio.create_task(pool.parse("bob", documents.locked, os.fsencode(fifo)))
    for function, said in (
        (documents.endless, "of processor time"),
        (documents.large, "of memory"),
        (documents.dead, f"status {-signal.SIGSEGV}"),
    ):
        with pytest.raises(Rejected) as told:
            await pool.parse("mallory", function, b"")
        assert told.value.code == "TOO_EXPENSIVE"
        assert said in told.value.message
        assert told.value.remedy
    assert pool.killed == 2
    await asyncio.to_thread(fifo.write_bytes, b"well")
    assert await innocent == [b"well"]


async def test_a_process_that_only_waits_is_killed_in_time(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await pid(pool)
    monkeypatch.setattr(parser_pool, "PATIENCE_SECONDS", -19.0)
    with pytest.raises(Rejected, match="TOO_EXPENSIVE"):
        await pool.parse("alice", documents.asleep, b"")
    assert not psutil.pid_exists(before)


async def test_an_idle_process_that_died_is_replaced(pool: ParserPool) -> None:
    before = await pid(pool)
    os.kill(before, signal.SIGKILL)
    (parser,) = pool._all
    await parser._process.wait()
    assert await pid(pool) != before


async def test_who_goes_away_frees_the_process(pool: ParserPool) -> None:
    before = await pid(pool)
    waiting = asyncio.create_task(pool.parse("alice", documents.asleep, b""))
    while pool._idle:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not psutil.pid_exists(before)
    assert await pid(pool) != before


async def test_one_owner_has_one_process_at_most(pool: ParserPool) -> None:
    pids = {await each for each in [asyncio.create_task(pid(pool)) for _ in range(5)]}
    assert len(pids) == len(pool._all) == 1


async def test_a_process_that_ends_with_its_service_is_no_answer(pool: ParserPool) -> None:
    running = asyncio.create_task(pool.run())
    await pid(pool)
    waiting = asyncio.create_task(pool.parse("alice", documents.asleep, b""))
    while pool._idle:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(Unavailable):
        await waiting
    assert pool.killed == 0
