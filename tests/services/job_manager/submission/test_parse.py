"""Submissions with descriptions that are not small: a process reads them, and its death is an answer to their sender alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.job_manager.commands import Commands, SubmissionPreparation
from services.job_manager.submission import parse
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from tests.hostile.expensive import requirements
from tests.services.world import World, user
from tests.unit.parsing import documents
from wms.bus.delivery import Decoded, Delivery
from wms.bus.kafka import Message
from wms.bus.message_preparation import MessagePreparation
from wms.bus.time_slices import TimeSlices
from wms.classad.expression import Expression
from wms.errors import Rejected
from wms.ids import CommandId
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages.commands import Command, Submit
from wms.parsing.parser_pool import ParserPool

LONG = requirements(1)


class Reading:
    """The preparation of submissions, with a pool of processes."""

    def __init__(self, world: World) -> None:
        self.parsers = ParserPool(parse.__name__, processes=1)
        taking = Commands(DEFAULT_SEGMENTS, SubmitCheck(DEFAULT_SEGMENTS), WaitingQuota(world.db))
        self._slices = TimeSlices()
        preparation = SubmissionPreparation(taking, world.db, self._slices, self.parsers)
        self._preparing: MessagePreparation[Command] = MessagePreparation(preparation, self._slices)

    async def is_parked(self, *jobs: dict[str, Any]) -> bool:
        _, deferred = await self._preparing.within_allowance([_message(jobs)])
        return bool(deferred)

    async def prepared(self, *jobs: dict[str, Any]) -> Any:
        (found,) = await self._preparing.whole([_message(jobs)])
        assert found.fault is None
        assert found.delivery is not None
        return found.delivery.prepared

    async def close(self) -> None:
        self._slices.close()


def _message(jobs: tuple[dict[str, Any], ...]) -> Decoded[Command]:
    raws = tuple(msgspec.Raw(msgspec.json.encode({"executable": "/bin/true"} | each)) for each in jobs)
    submit = Submit(command_id=CommandId("c"), jobs=raws)
    return Decoded(Message(0, 0, None, b"", ""), Delivery(user(), submit))


@pytest_asyncio.fixture
async def reading(the_world: World) -> AsyncIterator[Reading]:
    found = Reading(the_world)
    running = asyncio.create_task(found.parsers.run())
    yield found
    running.cancel()
    await asyncio.wait([running])
    await found.close()


async def test_small_descriptions_need_no_process_and_others_are_parked(reading: Reading) -> None:
    assert not await reading.is_parked({}, {"requirements": "other.a > 1"})
    assert await reading.is_parked({}, {"requirements": LONG})
    assert await reading.is_parked({"unknown": 1})
    assert not reading.parsers._all


async def test_a_process_validates_what_is_then_taken(reading: Reading) -> None:
    prepared = await reading.prepared({}, {"requirements": LONG, "name": "long"})
    assert [each.name for each in prepared.jobs] == ["", "long"]
    assert [each.requirements for each in prepared.required.values()] == ["", Expression.parse(LONG).text]
    # A kind that is known needs no process again.
    assert not await reading.is_parked({"requirements": "other.a > 1"})


async def test_all_problems_of_all_descriptions_are_told_with_their_places(reading: Reading) -> None:
    fault = await reading.prepared({}, {"requirements": LONG + "("}, {"unknown": 1})
    assert isinstance(fault, Rejected)
    assert fault.code == "DESCRIPTION_INVALID"
    assert [each.partition(".")[0] for each in fault.details] == ["jobs[1]", "jobs[2]"]


async def test_the_death_of_a_process_is_an_answer_and_the_next_is_read(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.job_manager.commands.valid_descriptions", documents.dead)
    fault = await reading.prepared({"requirements": LONG})
    assert isinstance(fault, Rejected)
    assert fault.code == "TOO_EXPENSIVE"
    assert reading.parsers.killed == 1
    monkeypatch.undo()
    assert (await reading.prepared({"requirements": LONG})).count == 1
