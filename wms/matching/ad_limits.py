"""Limits in the ad of a computing element on the jobs that it takes until its next ad, by SAM-Grid's rule or by one of the site's.

CurMatches starts at the ad's CurrentJobs and grows by one with each match. The next ad starts it anew.
JobsMatchedSinceLastAdvertisement = CurMatches - CurrentJobs. SAM-Grid's rule is

    (CurMatches < MaxJobs) && (JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs)

A site may write another rule (`rule`) over these counters and the other attributes of its ad. The counters only grow, and
matching stops once the rule is not true. So any rule comes down to one number for each ad: the matches until it is first not
true. For SAM-Grid's rule the number is computed arithmetically. A site's own rule is evaluated for increasing counters, once for
each ad. Pilots are counted in the same way, separately from jobs.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate
from wms.classad.tree import NameScope, Node, references
from wms.errors import Rejected
from wms.site import ComputingElement

MOST = 1_000
"""The most matches that a site's own rule can allow between two ads, since the rule is evaluated for each number of matches."""
STATED = {
    "MaxJobs": "max_jobs",
    "MaxSubmittingJobs": "max_submitting_jobs",
    "CurrentJobs": "current_jobs",
    "CurrentSubmittingJobs": "current_submitting_jobs",
}
"""The attributes of an ad that state limits and job counts, with the fields of `ComputingElement` that hold their values."""
SINCE = "JobsMatchedSinceLastAdvertisement"
COUNTED = frozenset(name.lower() for name in ("CurMatches", SINCE, *STATED))

Word = Literal["suppress", "delay", "avoid"]
"""The kinds of notice. `suppress`: no match until a new ad. `delay`: no match for a while. `avoid`: jobs or pilots failed there."""


class Notice(NamedTuple):
    """Why a computing element takes no more jobs or pilots, or is avoided: the kind of notice, and a text with the numbers."""

    word: Word
    detail: str

    def text(self) -> str:
        """Return the notice as one line of text: the kind, a colon and the detail."""
        return f"{self.word}: {self.detail}"


def mentions_counts(expression: str) -> bool:
    """Return whether the text of an expression contains the name of a job counter, even inside a string literal."""
    folded = expression.lower()
    return any(name in folded for name in COUNTED)


def counts(term: Node) -> bool:
    """Return whether an expression (`term`) references a job counter, such as `CurMatches`."""
    return not COUNTED.isdisjoint(references(term, NameScope.BARE) | references(term, NameScope.OWN))


def check_requirements(requirements: str) -> None:
    """Raise Rejected if the requirements in an ad, given as text, reference job counters.

    The counters do not change while jobs are compared, so such requirements would not limit anything.
    """
    if mentions_counts(requirements) and counts(Expression.parse(requirements, "requirements").tree):
        raise Rejected(
            "COUNTS_IN_REQUIREMENTS",
            "the requirements of an ad look at counts of jobs",
            "say in `rule` of its element how many may come",
        )


def allowance(element: ComputingElement, attributes: Mapping[str, Any] | None = None) -> int | None:
    """Return how many jobs may be matched with an element until its next ad, by its limits or its rule; None if it states none.

    `attributes` are the ad's values, which the rule may reference. Raise Rejected if the rule cannot be parsed.
    """
    if element.rule:
        return _by_rule(element, attributes or {})
    left = []
    if element.max_jobs:
        left.append(element.max_jobs - element.current_jobs)
    if element.max_submitting_jobs:
        left.append(element.max_submitting_jobs - element.current_submitting_jobs)
    return max(0, min(left)) if left else None


def _by_rule(element: ComputingElement, attributes: Mapping[str, Any]) -> int:
    rule = Expression.parse(element.rule, "rule")
    own = Ad.of(
        {name: value for name, value in attributes.items() if name.lower() in rule.names - COUNTED}
        | {name: getattr(element, field) for name, field in _known(element)}
    )
    return _let_pass(element.rule, own.text)


# Most ads say again what they said.
@lru_cache(maxsize=10_000)
def _let_pass(rule: str, said: str) -> int:
    own = Ad.parse(said)
    counted = {SINCE: f"other.{SINCE}", "CurMatches": f"CurrentJobs + other.{SINCE}"}
    ad = Ad.of(
        {name: own.expression(name) for name in own.names}
        | {name: Expression.parse(text) for name, text in counted.items()}
    )
    bound = ad.bind(Expression.parse(rule))
    # What looks at no count is the same for all.
    counts = range(MOST) if bound.other else (0,)
    return next((count for count in counts if evaluate(bound, _matched(count)) is not True), MOST)


def _known(element: ComputingElement) -> Iterable[tuple[str, str]]:
    """Yield the limits and counts that an element states, as pairs of attribute name and field.

    A limit of 0 means no limit and is left out.
    """
    return (
        (name, field)
        for name, field in STATED.items()
        if name.startswith("Current") or getattr(element, field)
    )


@lru_cache(maxsize=MOST)
def _matched(count: int) -> Ad:
    return Ad.of({SINCE: count})


def notice(element: ComputingElement, allowed: int | None, count: int, what: str = "jobs") -> Notice | None:
    """Return why an element takes no more jobs or pilots until its next ad; None while it takes more.

    `allowed` is the result of `allowance`, and `count` how many were sent since the ad. `what` is the word for them in the text: jobs
    or pilots.
    """
    if allowed is None or count < allowed:
        return None
    jobs, submitting = element.current_jobs + count, element.current_submitting_jobs + count
    if element.max_jobs and jobs >= element.max_jobs:
        of = _counted(element.current_jobs, count, element.max_jobs, what)
        return Notice("suppress", f"{of} (MaxJobs)")
    if element.max_submitting_jobs and submitting >= element.max_submitting_jobs:
        of = _counted(element.current_submitting_jobs, count, element.max_submitting_jobs, what)
        return Notice("delay", f"{of} being submitted (MaxSubmittingJobs)")
    return Notice("suppress", f"{count:,} {what} since its ad, whose rule lets no more come")


def _counted(told: int, since: int, most: int, what: str) -> str:
    """Return a text on a limit of an ad that is reached, by the count that the ad tells and the count since.

    The two may have jobs in common: pilots that the ad counts, and the jobs that these have taken. So no sum is said beyond the limit.
    """
    if told + since > most:
        return f"{told:,} by its ad and {since:,} since, of {most:,} {what}"
    return f"{told + since:,} of {most:,} {what}"
