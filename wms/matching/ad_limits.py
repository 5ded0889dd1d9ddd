"""Limits that an ad states: how many more jobs its element takes until its next ad, by SAM-Grid's rule or its own.

CurMatches starts at the ad's CurrentJobs and grows by one with each match until the next ad, which starts it anew;
JobsMatchedSinceLastAdvertisement = CurMatches - CurrentJobs. SAM-Grid's rule is

    (CurMatches < MaxJobs) && (JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs)

and a site may write another (`rule`), with whatever else its ad says. As the count only grows, and stands still once the rule is not
true, any rule comes down to one number for each ad: how many matches it lets pass until it is not true for the first time. For
SAM-Grid's that is arithmetic; another is evaluated by increasing counts, once for each ad. Pilots are counted likewise, by
themselves.
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
"""So many matches a rule of a site's own lets pass between two ads at most: it is evaluated for each."""
STATED = {
    "MaxJobs": "max_jobs",
    "MaxSubmittingJobs": "max_submitting_jobs",
    "CurrentJobs": "current_jobs",
    "CurrentSubmittingJobs": "current_submitting_jobs",
}
"""Attributes of an ad, and the fields of the element that stand for them."""
SINCE = "JobsMatchedSinceLastAdvertisement"
COUNTED = frozenset(name.lower() for name in ("CurMatches", SINCE, *STATED))

Word = Literal["suppress", "delay", "avoid"]
"""No match until a new ad; none for a while; better not there, by what became of others."""


class Notice(NamedTuple):
    """Why an element takes nothing, or should be given nothing: a word and the numbers."""

    word: Word
    detail: str

    def text(self) -> str:
        """Return it in words."""
        return f"{self.word}: {self.detail}"


def mentions_counts(expression: str) -> bool:
    """Tell whether a text names a count, be it in a string alone."""
    folded = expression.lower()
    return any(name in folded for name in COUNTED)


def counts(term: Node) -> bool:
    """Tell whether a term looks at a count."""
    return not COUNTED.isdisjoint(references(term, NameScope.BARE) | references(term, NameScope.OWN))


def check_requirements(requirements: str) -> None:
    """Raise Rejected if what an ad requires of jobs looks at counts: these stand still while jobs are compared."""
    if mentions_counts(requirements) and counts(Expression.parse(requirements, "requirements").tree):
        raise Rejected(
            "COUNTS_IN_REQUIREMENTS",
            "the requirements of an ad look at counts of jobs",
            "say in `rule` of its element how many may come",
        )


def allowance(element: ComputingElement, attributes: Mapping[str, Any] | None = None) -> int | None:
    """Return how many matches the ad lets pass until the next; None if it states no limit.

    Raises Rejected if the element's rule cannot be read.
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
    """Return what the element states: a limit of 0 is none, a count of 0 is one."""
    return (
        (name, field)
        for name, field in STATED.items()
        if name.startswith("Current") or getattr(element, field)
    )


@lru_cache(maxsize=MOST)
def _matched(count: int) -> Ad:
    return Ad.of({SINCE: count})


def notice(element: ComputingElement, allowed: int | None, count: int, what: str = "jobs") -> Notice | None:
    """Return why no more comes, by the ad and what has come since; None while more may."""
    if allowed is None or count < allowed:
        return None
    jobs, submitting = element.current_jobs + count, element.current_submitting_jobs + count
    if element.max_jobs and jobs >= element.max_jobs:
        return Notice("suppress", f"{jobs:,} of {element.max_jobs:,} {what} (MaxJobs)")
    if element.max_submitting_jobs and submitting >= element.max_submitting_jobs:
        of = f"{submitting:,} of {element.max_submitting_jobs:,}"
        return Notice("delay", f"{of} {what} being submitted (MaxSubmittingJobs)")
    return Notice("suppress", f"{count:,} {what} since its ad, whose rule lets no more come")
