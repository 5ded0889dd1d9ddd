"""Why jobs wait, where they would run, and what they could ask for instead."""

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
    """One way to ask for less, and what it would open beyond what is open already."""

    clauses: Texts
    """The clauses that fail and would be relaxed."""
    changes: LongTexts
    """The values that would do, in words."""
    slots: Total
    """Jobs of the kind that could run at once on the elements opened, were they empty."""
    free_slots: Total
    """Slots of pilots there that are free now."""
    elements: Count
    sites: Texts
    """Where; at most eight of them."""
    sites_total: Count

    def text(self) -> str:
        """Return it as a phrase: what to change, and what that opens."""
        more = self.sites_total - SITES_NAMED
        sites = ", ".join(self.sites[:SITES_NAMED]) + (f" and {more} more" if more > 0 else "")
        slots = "1 slot" if self.slots == 1 else f"{self.slots:,} slots"
        return f"{' and '.join(self.changes)} ({slots} at {sites})"


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps jobs of the same requirements from running anywhere, now (IMPOSSIBLE_NOW) or ever (NEVER_POSSIBLE)."""

    code: Word
    text: LongText
    jobs: Total
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """What they could ask for instead, the change that opens the most slots first."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A job's place in its task queue, and a prediction of the seconds until it is offered, if nothing changes.

    With a probability of 80 % the time lies between `earliest_seconds` and `latest_seconds`.
    """

    older_least: Total
    """Jobs of the same user priority in the same task queue that are older, at least."""
    older_most: Total
    level_chance: Chance
    """The part of the queue's draws that falls to the job's user priority."""
    matched_per_minute: Measure | None = None
    """Jobs of the queue, lately; None when none was."""
    earliest_seconds: Measure | None = None
    likely_seconds: Measure | None = None
    latest_seconds: Measure | None = None
    """None: nobody can say."""


class CeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one computing element says to one job."""

    site: StoredName
    ce: StoredName
    fits: bool
    clauses: Lines = ()
    """Every requirement that fails there, in words."""
    pilots: Total = 0
    """The number of running pilots of the job's VO."""
    free_slots: Total = 0
    fresh: bool = True
    """It advertises itself now."""
    limits: Lines = ()
    """What holds the job back there although it fits."""
    coming: Total = 0
    """Pilots on the way there."""
    slots: Total = 0
    """Of the pilots that run."""
    avoid: LongText = ""
    """Why other elements are better for now, though the job may run there."""
    rank: Measure | None = None
    """What the job's own rank says of it, if the job has one and fits."""
    decided: Lines = ()
    """The terms of its requirements that the element's ad decides, where it fits."""
    forwarded: Lines = ()
    """What of them is asked of the batch system there, each with the option that says it."""
    on_node: Lines = ()
    """What of them nobody is asked for, and why: the job agent looks at its node before anything starts."""


class JobWhy(msgspec.Struct, frozen=True, kw_only=True, tag="job-why"):
    """Answers WhyJob: a sentence first, the evidence after it."""

    query_id: MessageId
    client: Client
    job_id: JobNumber
    state: Word
    code: Word
    """Of a waiting job its tier, from NEVER_POSSIBLE to SOON; else the reason of its last move."""
    summary: LongText
    advice: LongText = ""
    ahead: Total | None = None
    """Jobs waiting in the same task queue, this one not counted."""
    elements: Annotated[tuple[CeVerdict, ...], Many] = ()
    """At most two hundred of them, those that are nearest to fitting first."""
    elements_total: Total = 0
    elements_fitting: Total = 0
    """Those that advertise themselves now and fit, whatever the limits."""
    failing: Counts = {}
    """By requirement: at how many computing elements it fails."""
    relaxations: Annotated[tuple[Relaxation, ...], Many] = ()
    """What the job could ask for instead, the change that opens the most slots first."""
    forecast: Forecast | None = None
    """Its place in its task queue and when it may start."""
