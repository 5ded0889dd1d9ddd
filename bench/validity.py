"""Whether a match is one: the clauses written down once more, as plainly as can be, for every system that is measured."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from bench.workload import SHARING, Jobs, Pilot, Queue


class InvalidError(Exception):
    """What was measured is wrong, so that how fast it was does not matter."""


class Match(msgspec.Struct, frozen=True):
    """A job, by its number, given to a pilot, by its place among those that asked."""

    job: int
    pilot: int


def mismatch(queue: Queue, pilot: Pilot) -> str:
    """Return which clause keeps jobs of the queue from the pilot; the empty string when none does."""
    if queue.cpu_time > pilot.cpu_time:
        return f"needs {queue.cpu_time} s, there are {pilot.cpu_time}"
    if pilot.group and queue.group != pilot.group:
        return f"of group {queue.group}, for a pilot of {pilot.group}"
    if pilot.group and pilot.group not in SHARING and queue.owner != pilot.owner:
        return f"of {queue.owner}, for a pilot of {pilot.owner}"
    if queue.sites and pilot.site not in queue.sites:
        return f"not for site {pilot.site}"
    if pilot.site in queue.banned:
        return f"bans site {pilot.site}"
    if queue.platforms and pilot.platform not in queue.platforms:
        return f"not for platform {pilot.platform}"
    if pilot.job_types and queue.job_types and not any(each in pilot.job_types for each in queue.job_types):
        return f"of type {queue.job_types}, for a pilot that takes {pilot.job_types}"
    for tag in queue.tags:
        if tag not in pilot.tags:
            return f"needs tag {tag}"
    return ""


def check(
    queues: Sequence[Queue], jobs: Jobs, pilots: Sequence[Pilot], matches: Iterable[Match]
) -> Counter[int]:
    """Raise InvalidError unless every match fits and no job comes twice; return how many each queue lost."""
    seen: set[int] = set()
    taken: Counter[int] = Counter()
    for match in matches:
        if match.job in seen:
            raise InvalidError(f"job {match.job} was given away twice")
        seen.add(match.job)
        place = int(jobs.queue[match.job - 1])
        fault = mismatch(queues[place], pilots[match.pilot])
        if fault:
            raise InvalidError(f"job {match.job} should not have gone to pilot {match.pilot}: {fault}")
        taken[place] += 1
    return taken


def check_best(
    queues: Sequence[Queue], left: Iterable[int], asked: Iterable[tuple[Pilot, int | None]]
) -> None:
    """Raise InvalidError when a pilot got less than the best.

    `left`: queues that still have jobs at the end, and so had some whenever they were asked for. `asked`: pilots with the
    queue of their job, None for those that got none. A job of a higher CPU segment, or any at all, was then overlooked.
    """
    waiting = list(left)
    for pilot, given in asked:
        least = queues[given].cpu_time if given is not None else 0
        for place in waiting:
            if queues[place].cpu_time > least and not mismatch(queues[place], pilot):
                got = f"a job of {least} s" if given is not None else "nothing"
                raise InvalidError(f"{pilot} got {got}, though queue {place} has jobs that fit it better")
