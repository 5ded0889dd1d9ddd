"""Conjuncts of job requirements: an expression is parsed, the job's own values are filled in, and it is split at each `&&`.

Requirements of 4,096 characters take some milliseconds. So each text is parsed once. The result stays in a weak cache as long as an
index refers to it.
"""

from collections.abc import Iterable
from weakref import WeakValueDictionary

from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import NOTHING, satisfied
from wms.classad.reduce import Sketch, could
from wms.classad.tree import Chain, Literal, chain, split
from wms.matching.ads import LONG_TEXT, JobAttributes, Seen, bound_to_job, job_values

MOST_TERMS = 32
"""The most conjuncts into which requirements are split. Longer ones are kept whole, since each conjunct costs memory and time."""
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

    def compile(self) -> None:
        """Do now what evaluations would do first, so that no draw does it for many new queues at once."""
        _ = self.expression.text, self.expression.envelope, self.expression.single
        self.over_nothing(is_sketch=True)

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
    """Return the requirements of a job, given as text, split into conjuncts; parsed or from the cache."""
    known = _parsed.get(text)
    found = known and known.bound.get(job_values(job, known.own) if known.own else ())
    if found:
        return found
    expression = Expression.parse(text)
    own = expression.own | expression.bare
    parsed = known or _parsed.setdefault(text, _Parsed(own))
    taken = SplitRequirements(parsed, _terms(bound_to_job(expression, job)))
    return parsed.bound.setdefault(job_values(job, own) if own else (), taken)


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
