"""Conjuncts of job requirements: an expression is parsed, the job's own values are filled in, and it is split at each `&&`.

To parse the longest requirements takes tens of milliseconds. So each text is parsed once, in any thread. The result stays in a weak
cache as long as an object refers to it. At first that is the preparation of a queue, later the index.
"""

from collections.abc import Generator, Iterable
from weakref import WeakValueDictionary

from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import NOTHING, satisfied
from wms.classad.reduce import Sketch, could
from wms.classad.tree import Chain, Literal, chain, split
from wms.matching.ads import LONG_TEXT, JobAttributes, Seen, bound_to_job, job_attributes, job_values
from wms.matching.grouping import Requirements

MOST_TERMS = 32
"""The most conjuncts into which requirements are split. Longer ones are kept whole, since each conjunct costs memory and time."""
LONG = 500
"""The number of characters above which expressions are parsed in another thread.

Shorter ones take less time than a change of threads.
"""


NOTHING_KNOWN = Sketch(NOTHING, frozenset())
"""A sketch (partly known ad) without any attribute, known or unknown."""


class Term:
    """A conjunct with the job's own values filled in, and its cached verdict on ads that lack all attributes it references."""

    __slots__ = ("_could", "_met", "expression", "names")

    def __init__(self, expression: Expression) -> None:
        self.expression = expression
        self.names = expression.other
        self._met: bool | None = None
        self._could: bool | None = None

    def over_nothing(self, *, is_sketch: bool) -> bool:
        """Return whether the conjunct is true of an ad that has none of the attributes that it references.

        With `is_sketch`, return whether it may become true of the ad of a pilot not yet sent.
        """
        if self._met is None:
            self._met = satisfied(self.expression, NOTHING)
        if self._met or not is_sketch:
            return self._met
        if self._could is None:
            self._could = could(self.expression, NOTHING_KNOWN)
        return self._could


class SplitRequirements:
    """A job's requirements, split into conjuncts; all of these are true exactly if the requirements are."""

    __slots__ = ("__weakref__", "_parsed", "terms")

    def __init__(self, parsed: "_Parsed", terms: Iterable[Expression]) -> None:
        self._parsed = parsed
        self.terms = tuple(map(Term, terms))

    def slim(self) -> None:
        """Free the memory of the parsed expression if it is one long conjunct that does not depend on the job."""
        if not self._parsed.own and len(self.terms) == 1 and len(self.terms[0].expression.text) > LONG_TEXT:
            self.terms[0].expression.shed_tree()


class _Parsed:
    """A parsed text of requirements: the job attributes that it references (`own`), and its conjuncts by the values of these (`bound`)."""

    __slots__ = ("__weakref__", "bound", "own")

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own
        self.bound: WeakValueDictionary[Seen, SplitRequirements] = WeakValueDictionary()


_parsed: WeakValueDictionary[str, _Parsed] = WeakValueDictionary()


def split_requirements(text: str, job: JobAttributes) -> SplitRequirements:
    """Return the requirements of a job, given as text, split into conjuncts; parsed or from the cache. Thread-safe."""
    known = _parsed.get(text)
    found = known and known.bound.get(job_values(job, known.own) if known.own else ())
    if found:
        return found
    expression = Expression.parse(text)
    own = expression.own | expression.bare
    parsed = known or _parsed.setdefault(text, _Parsed(own))
    taken = SplitRequirements(parsed, _terms(bound_to_job(expression, job)))
    return parsed.bound.setdefault(job_values(job, own) if own else (), taken)


def is_long(requirements: Requirements) -> bool:
    """Return whether a queue's expressions are so long (`LONG`) that they are parsed in another thread."""
    return length(requirements) > LONG


def length(requirements: Requirements) -> int:
    """Return the number of characters in a queue's requirements, rank and attributes together."""
    return len(requirements.requirements) + len(requirements.rank) + len(requirements.attributes)


def preparation(
    requirements: Requirements, *, over_sketches: bool = False
) -> Generator[None, None, SplitRequirements | None]:
    """Parse a queue's expressions step by step, in any thread, and compile its conjuncts.

    The generator pauses between steps and returns the conjuncts, or None without requirements. While the caller holds them,
    adding the queue to an index takes less than a millisecond; with `over_sketches`, also to a survey for pilots not yet sent.
    """
    job = job_attributes(requirements)
    job_values(job, frozenset())  # the job's own attributes
    yield
    if not requirements.requirements:
        return None
    taken = split_requirements(requirements.requirements, job)
    yield
    for each in taken.terms:
        _ = each.expression.text, each.expression.envelope, each.expression.single
        each.over_nothing(is_sketch=over_sketches)
        yield
    taken.slim()
    return taken


def _terms(bound: Expression) -> Iterable[Expression]:
    """Return the conjuncts of requirements as expressions.

    A conjunct whose value is a number becomes one that is true if the number is not 0.
    """
    if not isinstance(bound.tree, Chain):
        return [bound]
    terms = split("&&", bound.tree)
    return [bound] if len(terms) > MOST_TERMS else [_counting(Expression(term)) for term in terms]


def _counting(term: Expression) -> Expression:
    """Return an expression that is true where the term is true or a number other than 0."""
    return term if is_truth(term.tree) else Expression(chain("&&", [Literal(True), term.tree]))
