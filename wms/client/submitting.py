"""Sends a submission: first the messages with long parameter lists, then those with the descriptions. Returns one result for all."""

from collections.abc import Sequence

from wms.client.channel import Channel
from wms.client.submission import Messages, Submission, messages, rehearsals
from wms.errors import Rejected, Unavailable, WmsError
from wms.ids import joined
from wms.jobdesc.description import JobDescription
from wms.messages import commands as ordered
from wms.messages import replies


async def submit(
    exchange: Channel,
    timeout: float,
    jobs: Sequence[JobDescription],
    submission_id: str,
    *,
    strict: bool,
    hold: bool,
) -> Submission:
    """Submit jobs and return the result. `timeout` bounds the wait for each answer, in seconds.

    If `strict` is True, nothing is submitted if a job could run nowhere now. If `hold` is True, the jobs are Held. Raise Rejected
    if the system refuses a part, Unavailable if a part is not answered. The error's text also says how much was accepted.
    """
    whole = messages(jobs, submission_id, exchange.client, strict=strict, hold=hold)
    return await send(exchange, timeout, whole, submission_id, strict=strict)


async def send(
    exchange: Channel, timeout: float, whole: Messages, submission_id: str, *, strict: bool
) -> Submission:
    """Send the messages of a submission and return the result. `timeout` bounds the wait for each answer, in seconds.

    If `strict` is True, nothing is submitted if a job could run nowhere now. Raise Rejected if the system refuses a part, Unavailable
    if a part is not answered. The error's text also says how much was accepted.
    """
    await _keep_values(exchange, timeout, whole.values, submission_id)
    parts = whole.submits
    if strict and len(parts) > 1:
        # Each part is taken or refused by itself, so ask about all of them before the first is taken.
        for answer in await _ask_parts(exchange, timeout, rehearsals(parts)):
            if isinstance(answer, WmsError):
                raise answer
    answers = await _ask_parts(exchange, timeout, parts)
    taken = [answer for answer in answers if isinstance(answer, replies.Submitted)]
    for answer in answers:
        if isinstance(answer, WmsError):
            raise _partly(answer, submission_id, taken, len(parts))
    return Submission(
        id=submission_id,
        ids=tuple(each for answer in taken for each in answer.ids),
        repeated=all(answer.repeated for answer in taken),
        warnings=tuple(dict.fromkeys(warning for answer in taken for warning in answer.warnings)),
        foreseen=tuple(each for answer in taken for each in answer.foreseen),
    )


async def _keep_values(
    exchange: Channel, timeout: float, values: Sequence[ordered.AddChunks], submission_id: str
) -> None:
    asked_for = [(part.command_id, part) for part in values]
    for answer in await exchange.ask_all(
        ordered.TOPIC, asked_for, replies.ValuesKept, timeout, in_order=False
    ):
        if isinstance(answer, WmsError):
            raise _partly(answer, submission_id, [], 1)


async def _ask_parts(
    exchange: Channel, timeout: float, parts: Sequence[ordered.Submit]
) -> Sequence[replies.Submitted | WmsError]:
    asked_for = [(part.command_id, part) for part in parts]
    return await exchange.ask_all(ordered.TOPIC, asked_for, replies.Submitted, timeout)


def _partly(
    fault: WmsError, submission_id: str, taken: Sequence[replies.Submitted], parts: int
) -> Rejected | Unavailable:
    """Return the error `fault`, with the number of accepted messages (of `parts`) and jobs added to its text."""
    ids = joined(each for answer in taken for each in answer.ids)
    count = sum(high - low + 1 for low, high in ids)
    so_far = f"; {len(taken)} of {parts} parts were taken, {count:,} jobs" if parts > 1 else ""
    if isinstance(fault, Rejected):
        remedy = fault.remedy if parts == 1 else f"{fault.remedy or 'mend it'}; the rest stays submitted"
        return Rejected(fault.code, fault.message + so_far, remedy, fault.details)
    return Unavailable(
        f"{fault}{so_far}; the same submission with the id {submission_id} submits nothing twice"
    )
