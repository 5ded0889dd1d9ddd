"""Parts of replies that explain why jobs wait, where they could run, and what they could ask for instead."""

from typing import Annotated

import msgspec

from wms.bounds import (
    Chance,
    Client,
    Count,
    JobNumber,
    LongText,
    LongTexts,
    Measure,
    MessageId,
    StoredName,
    Texts,
    Total,
    Word,
)
from wms.messages.replies.bounds import Counts, Lines, Many

SITES_NAMED = 3


class Relaxation(msgspec.Struct, frozen=True, kw_only=True):
    """One way to weaken a job's requirements, and how many more computing elements and slots would then fit it."""

    clauses: Texts
    """The requirements that fail now and would be weakened."""
    changes: LongTexts
    """The changed values with which they would be met, in words."""
    slots: Total
    """How many of the jobs could run at once on the computing elements that would newly fit, were they empty."""
    free_slots: Total
    """How many slots of running pilots on the computing elements that would newly fit are free now."""
    elements: Count
    sites: Texts
    """The sites of the computing elements that would newly fit; at most eight."""
    sites_total: Count

    def text(self) -> str:
        """Return the change and its gain as a phrase for people: what to ask for, and the slots gained."""
        more = self.sites_total - SITES_NAMED
        sites = ", ".join(self.sites[:SITES_NAMED]) + (f" and {more} more" if more > 0 else "")
        slots = "1 slot" if self.slots == 1 else f"{self.slots:,} slots"
        return f"{' and '.join(self.changes)} ({slots} at {sites})"


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """Why jobs with the same requirements can run nowhere: not now (code IMPOSSIBLE_NOW) or never (NEVER_POSSIBLE)."""

    code: Word
    text: LongText
    jobs: Total
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """Weaker requirements that would help, the one that opens the most slots first."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A waiting job's place in its task queue, and the predicted time in seconds until a pilot is offered it.

    With a probability of 80 % the time lies between `earliest_seconds` and `latest_seconds`. The prediction assumes that nothing
    changes. The times are None if none can be predicted.
    """

    older_least: Total
    """The least number of older waiting jobs with the same user priority in the same task queue."""
    older_most: Total
    """The greatest number of older waiting jobs with the same user priority in the same task queue."""
    level_chance: Chance
    """The probability with which the queue's next job is one of this job's user priority, from 0 to 1."""
    matched_per_minute: Measure | None = None
    """How many jobs of the queue were lately given to pilots per minute; None if none were."""
    earliest_seconds: Measure | None = None
    likely_seconds: Measure | None = None
    latest_seconds: Measure | None = None
    """The end of the predicted interval, in seconds from now. None if no time can be predicted."""


class CeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """How one computing element fits one job: whether it meets the requirements, and what it has for the job now."""

    site: StoredName
    ce: StoredName
    fits: bool
    clauses: Lines = ()
    """Every requirement of the job that fails on the computing element, in words."""
    pilots: Total = 0
    """The number of pilots of the job's VO that run on the computing element."""
    free_slots: Total = 0
    fresh: bool = True
    """Whether the computing element has an ad that has not expired."""
    limits: Lines = ()
    """The limits that hold the job back on the computing element although it fits, in words."""
    coming: Total = 0
    """The number of pilots that were sent to the computing element and do not run yet."""
    slots: Total = 0
    """The number of slots of the pilots that run on the computing element."""
    avoid: LongText = ""
    """Why jobs prefer other computing elements at present, although this one may run the job. Empty if they do not."""
    rank: Measure | None = None
    """The value of the job's rank expression for the computing element. None if the job has none or does not fit."""
    decided: Lines = ()
    """The parts of the job's requirements that the computing element's ad decides, if the job fits."""
    forwarded: Lines = ()
    """The parts of the job's requirements that are passed to the batch system, each with the batch system's option."""
    on_node: Lines = ()
    """The parts of the job's requirements that only the node can decide, and why. The job agent checks them before the job starts.
    """


class JobWhy(msgspec.Struct, frozen=True, kw_only=True, tag="job-why"):
    """Answers WhyJob: a sentence that says why the job is in its state, and the facts behind it."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    state: Word
    code: Word
    """For a waiting job, the reason why it waits, from NEVER_POSSIBLE to SOON. For other jobs, the reason of the last state change.
    """
    summary: LongText
    advice: LongText = ""
    ahead: Total | None = None
    """The number of other jobs that wait in the same task queue. None if the job does not wait."""
    elements: Annotated[tuple[CeVerdict, ...], Many] = ()
    """At most two hundred computing elements, those first that come nearest to fitting the job."""
    elements_total: Total = 0
    elements_fitting: Total = 0
    """How many computing elements with an unexpired ad fit the job, without regard to limits."""
    failing: Counts = {}
    """For each requirement: at how many computing elements it fails."""
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """Weaker requirements that the job could have, the one that opens the most slots first."""
    forecast: Forecast | None = None
    """The job's place in its task queue, and when it may start. None if it does not wait."""
    isolation: Word = ""
    """How the payload of the job's last attempt is isolated: `account` (namespaces, under an account of its own), `namespaces`, `none` or `direct`.

    Empty if unknown, or if the job has no attempt.
    """
