"""SAM stations: a description's list of stations becomes a requirement on the ads of computing elements."""

from wms.classad.expression import Expression
from wms.classad.tree import Call, Literal, NameScope, Node, Reference, chain
from wms.jobdesc.gpus import required_gpus

STATIONS = "StationNames"
"""The ad attribute with the names of a computing element's SAM stations."""


def required_text(requirements: str, stations: tuple[str, ...], gpus: int = 0) -> str:
    """Return the canonical ClassAd text that demands the requirements, one of the stations and so many GPUs; empty if there are none.

    Raise Rejected if the requirements are no ClassAd expression, or are too long together with the stations.
    """
    terms: list[Node] = [Expression.parse(requirements).tree] if requirements else []
    if gpus:
        terms.append(Expression.parse(required_gpus(gpus)).tree)
    if stations:
        there = Reference(NameScope.OTHER, STATIONS)
        names = sorted({each.casefold() for each in stations})
        terms.append(chain("||", [Call("member", (Literal(each), there)) for each in names]))
    return Expression(chain("&&", terms)).text if terms else ""
