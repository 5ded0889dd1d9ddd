"""Conjuncts: the requirements of jobs, parsed, bound to the jobs' own ads, and taken apart at each `&&`.

To parse the longest requirements takes tens of milliseconds. So they are parsed once, in any thread, and what comes of that is
found again for as long as somebody holds it: whoever prepares a queue for an index, and then the index itself.
"""

from collections.abc import Generator, Iterable
from weakref import WeakValueDictionary

from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import NOTHING, satisfied
from wms.classad.reduce import Sketch, could
from wms.classad.tree import Chain, Literal, chain, split
from wms.matching.ads import LONG_TEXT, Seen, Words, bound_to_job, told, words
from wms.matching.grouping import Requirements

MOST_TERMS = 32
"""Requirements of more conjuncts are kept as one: hardly any other queue has the same ones, and each takes memory and time."""
LONG = 500
"""Characters. What is shorter is parsed in less time than it takes to change to another thread and back."""


NOTHING_KNOWN = Sketch(NOTHING, frozenset())
"""An ad that has no attribute, and will have none."""


class Term:
    """A conjunct, bound to the ads of the jobs, and what it is over ads that have none of the names that it looks at."""

    __slots__ = ("_could", "_met", "expression", "names")

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.names = expression.other
        self._met: bool | None = None
        self._could: bool | None = None

    def over_nothing(self, *, is_sketch: bool) -> bool:
        """Tell whether it is met by such an ad; of a sketch, whether it may be."""
        if self._met is None:
            self._met = satisfied(self.expression, NOTHING)
        if self._met or not is_sketch:
            return self._met
        if self._could is None:
            self._could = could(self.expression, NOTHING_KNOWN)
        return self._could


class TakenApart:
    """Requirements as conjuncts: each is true exactly where it counts as true in them."""

    __slots__ = ("__weakref__", "_parsed", "terms")

    def __init__(self, parsed: "_Parsed", terms: Iterable[Expression]) -> None:
        self._parsed = parsed
        self.terms = tuple(map(Term, terms))

    def slim(self) -> None:
        """Give back the memory of a large tree, if it is that of the text itself."""
        if not self._parsed.own and len(self.terms) == 1 and len(self.terms[0].expression.text) > LONG_TEXT:
            self.terms[0].expression.shed_tree()


class _Parsed:
    """A text that was parsed: the names of its own job that it looks at, and what it is for jobs that say as much of these."""

    __slots__ = ("__weakref__", "bound", "own")

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own
        self.bound: WeakValueDictionary[Seen, TakenApart] = WeakValueDictionary()


_parsed: WeakValueDictionary[str, _Parsed] = WeakValueDictionary()


def taken_apart(text: str, job: Words) -> TakenApart:
    """Return the requirements of a job as conjuncts. May be called in any thread."""
    known = _parsed.get(text)
    found = known and known.bound.get(told(job, known.own) if known.own else ())
    if found:
        return found
    expression = Expression.parse(text)
    own = expression.own | expression.bare
    parsed = known or _parsed.setdefault(text, _Parsed(own))
    taken = TakenApart(parsed, _terms(bound_to_job(expression, job)))
    return parsed.bound.setdefault(told(job, own) if own else (), taken)


def is_long(requirements: Requirements) -> bool:
    """Tell whether a queue's expressions take long to parse."""
    return length(requirements) > LONG


def length(requirements: Requirements) -> int:
    """Return of how many characters a queue's expressions are."""
    return len(requirements.requirements) + len(requirements.rank) + len(requirements.attributes)


def preparation(
    requirements: Requirements, *, over_sketches: bool = False
) -> Generator[None, None, TakenApart | None]:
    """Parse a queue's expressions, in steps and in any thread, and compile what resources are judged by.

    Whoever holds what is returned adds the queue to an index, or with `over_sketches` to a survey, in a millisecond.
    """
    job = words(requirements)
    told(job, frozenset())  # the job's own attributes
    yield
    if not requirements.requirements:
        return None
    taken = taken_apart(requirements.requirements, job)
    yield
    for each in taken.terms:
        _ = each.expression.text, each.expression.envelope, each.expression.single
        each.over_nothing(is_sketch=over_sketches)
        yield
    taken.slim()
    return taken


def _terms(bound: Expression) -> Iterable[Expression]:
    """Return the conjuncts, each as an expression that is true where the conjunct counts as true."""
    if not isinstance(bound.tree, Chain):
        return [bound]
    terms = split("&&", bound.tree)
    return [bound] if len(terms) > MOST_TERMS else [_counting(Expression(term)) for term in terms]


def _counting(term: Expression) -> Expression:
    """Return a term that is true where a number would count as true."""
    return term if is_truth(term.tree) else Expression(chain("&&", [Literal(True), term.tree]))
