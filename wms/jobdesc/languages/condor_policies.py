"""The policies of submit files: when HTCondor holds a job, removes it, or starts it again.

A policy is carried out if what it says is what happens here in any case. That is judged by its value for each way in which a job can end
or stand.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from wms.classad.expression import Expression
from wms.classad.folding import fold
from wms.classad.tree import Binary, Literal, Node, Reference, with_children
from wms.classad.writing import write
from wms.errors import Rejected
from wms.jobdesc.languages.condor_job import CatalogueEntry, CondorJob, Handler, limit_wall_time, origin_of
from wms.jobdesc.languages.condor_macros import HTCONDOR_ALONE, whole
from wms.jobdesc.languages.condor_text import Command

Facts = Mapping[str, int | bool]

_CLOCK: Final = re.compile(r"\btime\(\s*\)|\bCurrentTime\b", re.IGNORECASE)
_SUCCESS: Final[Facts] = {"exitbysignal": False, "exitcode": 0}
_FAILURES: Final[tuple[Facts, ...]] = (
    *({"exitbysignal": False, "exitcode": code} for code in range(1, 256)),
    *({"exitbysignal": True, "exitsignal": signal} for signal in (6, 9, 11, 15)),
)
_STANDING: Final[tuple[Facts, ...]] = ({"jobstatus": 1}, {"jobstatus": 2})
"""A job that is idle, and one that runs. None is held for a fault here."""


def truth(text: str, facts: Facts) -> bool | None:
    """Return whether a policy is true of a job with these attributes; None if that depends on others, or the text is no expression."""
    try:
        found = fold(_known(_parsed(text), facts))
    except Rejected:
        return None
    if isinstance(found, Literal) and isinstance(found.value, bool | int):
        return bool(found.value)
    return None


def _parsed(text: str) -> Node:
    # Two names of the present time; our expressions have no clock.
    return Expression.parse(_CLOCK.sub("PresentTime", text)).tree


def _known(node: Node, facts: Facts) -> Node:
    if isinstance(node, Reference):
        return Literal(facts[node.key]) if node.key in facts else node
    return with_children(node, lambda each: _known(each, facts))


def _all(text: str, facts: Iterable[Facts], wanted: bool) -> bool:  # noqa: FBT001 - the value that is looked for
    return all(truth(text, each) is wanted for each in facts)


def hold_at_exit(job: CondorJob, command: Command) -> None:
    """Take `on_exit_hold`. It may be false of all ends, or true of all failures: then the job is Failed."""
    origin = origin_of(command)
    if _all(command.value, (_SUCCESS, *_FAILURES), wanted=False):
        job.draft.kept(origin)
    elif _all(command.value, (_SUCCESS,), wanted=False) and _all(command.value, _FAILURES, wanted=True):
        job.draft.translated(origin, "a job that fails is Failed; wms submit --retry-of starts it again")
    else:
        job.draft.impossible(origin, "a job that ends is Done or Failed; use success_exit_code")


def remove_at_exit(job: CondorJob, command: Command) -> None:
    """Take `on_exit_remove`. It must be true of all ends, or, beside `max_retries`, of success alone: else a job starts again without end."""
    is_said_of_success = _all(command.value, (_SUCCESS,), wanted=True)
    if _removes_all(command.value) or (
        is_said_of_success and _all(command.value, _FAILURES, wanted=False) and job.text("max_retries")
    ):
        job.draft.kept(origin_of(command))
    else:
        job.draft.impossible(
            origin_of(command), "starts a job again without end; max_retries says how many times"
        )


def _removes_all(text: str) -> bool:
    return _all(text, (_SUCCESS, *_FAILURES), wanted=True)


def retries(job: CondorJob, command: Command) -> None:
    """Put the number of retries into the draft. A job that `on_exit_remove` ends in any case has none."""
    times, origin = whole(command.value), origin_of(command)
    if times is None:
        job.draft.impossible(origin, HTCONDOR_ALONE)
    elif _removes_all(job.text("on_exit_remove") or "false"):
        job.draft.kept(origin, "on_exit_remove ends the job in any case")
    else:
        job.draft.put("retries", times, origin)


def _code_into(field: str) -> Handler:
    def handler(job: CondorJob, command: Command) -> None:
        code = whole(command.value)
        if code is None:
            job.draft.impossible(origin_of(command), HTCONDOR_ALONE)
            return
        job.draft.put(field, [code], origin_of(command))
        if not job.text("max_retries"):
            retries(job, replace(command, value=_DEFAULT_RETRIES))

    return handler


def limit_of(text: str) -> int | None:
    """Return the seconds after which a policy is first true of a job that runs, if it is never true of one that is idle; else None."""
    try:
        running = fold(_known(_parsed(text), {"jobstatus": 2}))
    except Rejected:
        return None
    if truth(text, {"jobstatus": 1}) is not False or not isinstance(running, Binary):
        return None
    seconds = running.right.value if isinstance(running.right, Literal) else None
    is_limit = running.operator in (">", ">=") and write(running.left, lower=True) in _RUN_TIMES
    return seconds if is_limit and isinstance(seconds, int) and not isinstance(seconds, bool) else None


def _never(why: str) -> Handler:
    def handler(job: CondorJob, command: Command) -> None:
        seconds = limit_of(command.value)
        if _all(command.value, _STANDING, wanted=False):
            job.draft.kept(origin_of(command), "is never true here: no job is held for a fault")
        elif seconds is not None:
            limit_wall_time(job, command, seconds)
        else:
            job.draft.impossible(origin_of(command), why)

    return handler


_RUN_TIMES: Final = frozenset(
    f"presenttime - {since}"
    for since in (
        "enteredcurrentstatus",
        "jobstartdate",
        "jobcurrentstartdate",
        "jobcurrentstartexecutingdate",
    )
)
"""How long a job has run, as policies say it."""
_DEFAULT_RETRIES: Final = "2"
"""HTCondor's DEFAULT_JOB_MAX_RETRIES, which counts where another command speaks of success or retries."""
_LIMITS: Final = "use limits of memory, disk and time"
POLICIES: Final[Mapping[str, CatalogueEntry]] = {
    "on_exit_hold": CatalogueEntry(
        "translated",
        "false, or true of all failures, which are Failed; others are refused",
        hold_at_exit,
        ("onexithold",),
    ),
    "max_retries": CatalogueEntry("translated", "`retries`", retries, ("maxretries",)),
    "retry_until": CatalogueEntry(
        "translated",
        "an exit code: `final_exit_codes`, with 2 retries if there is no `max_retries`; expressions are refused",
        _code_into("final_exit_codes"),
        ("retryuntil",),
    ),
    "success_exit_code": CatalogueEntry(
        "translated",
        "`success_exit_codes`, with 2 retries if there is no `max_retries`",
        _code_into("success_exit_codes"),
        ("successexitcode",),
    ),
    "on_exit_remove": CatalogueEntry(
        "kept",
        "true of all ends, or of success alone beside `max_retries`; others are refused",
        remove_at_exit,
        ("onexitremove",),
    ),
    "periodic_hold": CatalogueEntry(
        "kept",
        f"never true of jobs that are not held, or a time of running: `wall_time`; others are refused: {_LIMITS}",
        _never(_LIMITS),
        ("periodichold",),
    ),
    "periodic_remove": CatalogueEntry(
        "kept",
        f"never true of jobs that are not held, or a time of running: `wall_time`; others are refused: {_LIMITS}",
        _never(_LIMITS),
        ("periodicremove",),
    ),
}
