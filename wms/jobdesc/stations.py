"""SAM stations: the list of a description becomes a requirement on the ad of a computing element."""

from wms.classad.expression import Expression
from wms.classad.tree import Call, Literal, NameScope, Node, Reference, chain

STATIONS = "StationNames"
"""The attribute of a computing element's ad that has the names of its SAM stations."""


def required_text(requirements: str, stations: tuple[str, ...]) -> str:
    """Return the canonical ClassAd text of a job's requirements and of having one of the stations; empty for neither.

    Raise Rejected if the requirements are no ClassAd expression, or are too long together with the stations.
    """
    terms: list[Node] = [Expression.parse(requirements).tree] if requirements else []
    if stations:
        there = Reference(NameScope.OTHER, STATIONS)
        names = sorted({each.casefold() for each in stations})
        terms.append(chain("||", [Call("member", (Literal(each), there)) for each in names]))
    return Expression(chain("&&", terms)).text if terms else ""
