"""Values as Slurm writes them: times, lists of task ids, and numbers of GPUs."""

import re
from typing import Final

from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.series import NUMBER_BYTES

UNLIMITED: Final = frozenset({"unlimited", "infinite", "0", "-1"})
_MINUTES = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")
_HOURS = re.compile(r"(\d{1,9}):(\d{1,9}):(\d{1,9})")
_DAYS = re.compile(r"(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_GPUS = re.compile(r"(?:gpu:)?(\d{1,4})")


def seconds(text: str) -> int | None:
    """Return the seconds of a time limit, rounded up to minutes as Slurm does. 0: there is no limit. None: the text is no time.

    The forms are minutes, `mm:ss`, `h:mm:ss`, `d-h`, `d-h:mm` and `d-h:mm:ss`.
    """
    said = text.strip().lower()
    if said in UNLIMITED:
        return 0
    if found := _MINUTES.fullmatch(said):
        days, hours, minutes, rest = "0", "0", *found.groups(default="0")
    elif found := _HOURS.fullmatch(said):
        days, hours, minutes, rest = "0", *found.groups()
    elif found := _DAYS.fullmatch(said):
        days, hours, minutes, rest = found.groups(default="0")
    else:
        return None
    total = int(days) * 86_400 + int(hours) * 3_600 + int(minutes) * 60 + int(rest)
    return -(-total // 60) * 60


def task_ids(text: str) -> tuple[int, ...]:
    """Return the ids of an array's tasks in order, such as of `1-10:3,20%4`; empty if the text is no such list, or has too many.

    Raise Rejected (EXPANDS_TOO_FAR) before they are made if a document may not expand so far.
    """
    expansion, found = Expansion(), set[int]()
    for part in text.partition("%")[0].strip().split(","):
        one = _RANGE.fullmatch(part)
        if one is None:
            return ()
        first, last, step = int(one[1]), int(one[2] or one[1]), int(one[3] or 1)
        if last < first or step < 1 or (last - first) // step + len(found) >= ARRAY_LIMIT:
            return ()
        tasks = range(first, last + 1, step)
        expansion.take(len(tasks), NUMBER_BYTES * len(tasks))
        found.update(tasks)
    return tuple(sorted(found))


def step_of(text: str) -> str:
    """Return the step of a list of task ids, as Slurm tells it to the tasks: 1 if none is written."""
    found = re.search(r":(\d+)", text)
    return found[1] if found else "1"


def gpus(text: str, *, in_gres: bool = False) -> int | None:
    """Return how many GPUs an option asks for; 0 if it is empty. None: it asks for a model, or for something else.

    `in_gres` says that the text names its resources, as `gpu:2`. There, `gpu` is one.
    """
    said = text.strip().lower()
    if not said or said == "none":
        return 0
    if in_gres and said == "gpu":
        return 1
    found = _GPUS.fullmatch(said)
    return int(found[1]) if found and (said.startswith("gpu:") or not in_gres) else None
