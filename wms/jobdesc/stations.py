"""SAM stations: the list of a description, translated into what the job requires of a resource's ad."""

from wms.classad.expression import Expression
from wms.classad.tree import Call, Literal, NameScope, Node, Reference, chain

STATIONS = "StationNames"
"""The attribute of an element's ad with the names of its SAM stations."""


def required_text(requirements: str, stations: tuple[str, ...]) -> str:
    """Return the canonical text of what a job requires: its expression, and that its site has one of the stations named.

    Raises Rejected where the expression cannot be read.
    """
    terms: list[Node] = [Expression.parse(requirements).tree] if requirements else []
    if stations:
        there = Reference(NameScope.OTHER, STATIONS)
        names = sorted({each.casefold() for each in stations})
        terms.append(chain("||", [Call("member", (Literal(each), there)) for each in names]))
    return Expression(chain("&&", terms)).text if terms else ""
