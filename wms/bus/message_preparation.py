"""Prepares messages (parses and checks them) before their transaction, within a limit of processor time for each owner.

Small documents are parsed in a thread. Messages with others are parked, so that nobody waits for them; a process parses them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from wms.bus.batch_size import GOAL_SECONDS
from wms.bus.delivery import Decoded, Delivery, Preparation
from wms.bus.time_slices import PreparationOutcome, PreparationWork, TimeSlices
from wms.errors import Rejected
from wms.parsing.parser_pool import NeedsProcess

M = TypeVar("M")

ALLOWANCE_SECONDS = 0.1
"""The limit, in processor seconds, of preparing one owner's messages in a batch with several owners. Further messages are parked."""
ALONE_SECONDS = GOAL_SECONDS
"""The limit, in processor seconds, of preparing a batch whose messages are all of one owner. It is higher, as no other owner waits."""
WHOLE_SECONDS = 30.0
"""The limit, in processor seconds, of preparing one message that is not parked. A message that needs more is refused."""

TOO_EXPENSIVE = Rejected(
    "TOO_EXPENSIVE", f"to read this takes more than {WHOLE_SECONDS:g} s", "send it in smaller parts"
)


class MessagePreparation(Generic[M]):
    """Runs the preparation (parsing and checking) of a consumer's messages before the transactions that handle them."""

    def __init__(self, preparation: Preparation[Delivery[M]], slices: TimeSlices) -> None:
        self._preparation = preparation
        self._slices = slices

    async def within_allowance(
        self, batch: Sequence[Decoded[M]], on_step: Callable[[], None] = lambda: None
    ) -> tuple[list[Decoded[M]], list[Decoded[M]]]:
        """Prepare the messages of a batch within their owners' time limits.

        Return the prepared messages and the deferred ones, which are to be parked.

        A message is deferred if its owner's limit is used up, if it needs a parsing process, or if an earlier one of the same owner and partition is
        deferred. `on_step` is called every few milliseconds of work.
        """
        alone = len({each.owner for each in batch if each.owner}) <= 1
        outcomes = await self._outcomes(batch, ALONE_SECONDS if alone else ALLOWANCE_SECONDS, on_step)
        good: list[Decoded[M]] = []
        deferred: list[Decoded[M]] = []
        waiting: set[tuple[int, str]] = set()
        for each, outcome in zip(batch, outcomes, strict=True):
            whose = each.record.partition, each.owner
            if each.owner and (whose in waiting or not outcome.is_done or _needs_process(outcome)):
                waiting.add(whose)
                deferred.append(each)
            else:
                good.append(_prepared(each, outcome))
        return good, deferred

    async def whole(self, batch: Sequence[Decoded[M]]) -> list[Decoded[M]]:
        """Prepare all messages, and return them in order. A message that takes over `WHOLE_SECONDS` is returned with a fault."""
        prepared: list[Decoded[M]] = []
        for each in batch:
            (outcome,) = await self._outcomes([each], WHOLE_SECONDS)
            if _needs_process(outcome) and each.delivery is not None:
                outcome = await self._with_process(each.owner, each.delivery)
            prepared.append(_prepared(each, outcome))
        return prepared

    async def _with_process(self, owner: str, delivery: Delivery[M]) -> PreparationOutcome:
        """Prepare a message whose documents a process parses. The outcome's value is the refusal if they are refused, or the process died."""
        try:
            steps = await self._preparation.prepare_parsed(delivery)
        except Rejected as fault:
            return PreparationOutcome(is_done=True, value=fault)
        outcome = PreparationOutcome()
        await self._slices.run([PreparationWork(owner, steps, outcome)], WHOLE_SECONDS)
        return outcome

    async def _outcomes(
        self, batch: Sequence[Decoded[M]], allowance: float, on_step: Callable[[], None] = lambda: None
    ) -> list[PreparationOutcome]:
        outcomes: list[PreparationOutcome] = []
        works: list[PreparationWork] = []
        for each in batch:
            good = each.delivery if each.fault is None else None
            steps = self._preparation.prepare(good) if good is not None else None
            outcomes.append(PreparationOutcome(is_done=steps is None))
            if steps is not None:
                works.append(PreparationWork(each.owner, steps, outcomes[-1]))
        if works:
            await self._preparation.refresh()
            await self._slices.run(works, allowance or math.inf, on_step)
        return outcomes


def _needs_process(outcome: PreparationOutcome) -> bool:
    return isinstance(outcome.error, NeedsProcess)


def _prepared(each: Decoded[M], outcome: PreparationOutcome) -> Decoded[M]:
    if not outcome.is_done:
        return msgspec.structs.replace(each, fault=TOO_EXPENSIVE, error=str(TOO_EXPENSIVE))
    if isinstance(outcome.error, Exception):
        fault = Rejected("NOT_HANDLED", "a fault of the system kept this from being read")
        return msgspec.structs.replace(each, fault=fault, error=repr(outcome.error))
    if outcome.value is None or each.delivery is None:
        return each
    delivery = msgspec.structs.replace(each.delivery, prepared=outcome.value)
    return msgspec.structs.replace(each, delivery=delivery)
