"""Why no pilots are sent for a job where it fits, as the last plan of the pilot submitter says."""

from collections.abc import Iterable, Mapping

from wms.ids import CeId
from wms.matching.grouping import Requirements, slots_needed
from wms.provisioning.plan_report import ElementDecision, WorkDecision

NAMED = 3
"""How many elements a text names at most."""


def hindrances(requirements: Requirements, decisions: Iterable[ElementDecision]) -> dict[CeId, str]:
    """Return, by computing element, why the last plan sends no more pilots for jobs with these requirements."""
    return {
        CeId(each.site, each.ce): share.why
        for each in decisions
        for share in each.shares
        if _hinders(share, requirements)
    }


def _hinders(share: WorkDecision, asked: Requirements) -> bool:
    """Return whether a decision is on work like this, and names an obstacle.

    Pilots are refused for what the jobs' own expressions request of the batch system. A job without any is not meant.
    """
    same = (share.vo, share.cpu_segment, share.processors) == (
        asked.vo,
        asked.cpu_segment,
        slots_needed(asked),
    )
    meant = share.held not in ("", "NO_DEMAND") and (share.held != "BACKOFF" or bool(asked.requirements))
    return same and meant


def in_words(found: Mapping[CeId, str]) -> str:
    """Return a text on why no more pilots are sent, which names a few elements; empty if nothing hinders it."""
    named = [f"{place.site}/{place.ce}: {why}" for place, why in list(found.items())[:NAMED]]
    more = [f"and {len(found) - NAMED:,} more"] if len(found) > NAMED else []
    return "no more are sent to " + "; ".join([*named, *more]) if found else ""
