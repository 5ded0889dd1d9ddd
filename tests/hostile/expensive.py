"""Submissions that are expensive to read, and a user who sends them all the time."""

import asyncio
import contextlib
import itertools

import msgspec

from tests.hostile.target import Target
from wms.client import JobDescription
from wms.errors import Unavailable
from wms.ids import CommandId
from wms.messages import commands

OWNER = "spender"
PAUSE_SECONDS = 5.0

_encoder = msgspec.json.Encoder()


def requirements(n: int, size: int = 3_900) -> str:
    """Return an expression of about `size` characters, another one for each `n`."""
    terms: list[str] = []
    length = 0
    while length < size:
        number = len(terms)
        terms.append(
            f'(other.Memory{n}x{number} > {number} ? other.Disk < 7 : regexp("a{number}.*", other.Name))'
        )
        length += len(terms[-1]) + 4
    return " && ".join(terms)


def submission(n: int, jobs: int = 52, *, rehearsal: bool = False) -> commands.Submit:
    """Return a submission of which each description has expensive requirements of its own."""
    each = [
        JobDescription(executable="/bin/true", requirements=requirements(1_000 * n + job))
        for job in range(jobs)
    ]
    return commands.Submit(
        command_id=CommandId(f"expensive-{n}"),
        jobs=tuple(msgspec.Raw(_encoder.encode(job)) for job in each),
        rehearsal=rehearsal,
    )


async def keep_submitting(target: Target) -> None:
    """Send one rehearsal after the other, each of seconds of processor time, until cancelled; wait for a broker that is away."""
    token = target.user_token(OWNER)
    for n in itertools.count(1):
        with contextlib.suppress(Unavailable):
            await target.send(commands.TOPIC, [submission(n, rehearsal=True)], token)
        await asyncio.sleep(PAUSE_SECONDS)
