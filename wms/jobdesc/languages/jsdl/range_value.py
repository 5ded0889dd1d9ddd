"""Range values of JSDL: the set of numbers, as bounds, ranges and exact values, from which a resource's number must be."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from wms.jobdesc.languages.hardened_xml import XmlNode, children, local, word_of_node
from wms.jobdesc.languages.jsdl.number import is_true, real


class ValueRange(NamedTuple):
    """A range of numbers from `least` to `most`; None for no bound on that side."""

    least: float | None = None
    most: float | None = None

    @property
    def exact(self) -> float | None:
        """The only number of the range; None if there are several."""
        return self.least if self.least == self.most else None

    @property
    def is_open(self) -> bool:
        """Whether the range has no bound on either side."""
        return self.least is None and self.most is None


def range_of(node: XmlNode) -> ValueRange:
    """Return the range from the least to the greatest number of a JSDL range value. Gaps in between are ignored.

    Raise ValueError if a bound is no finite number, or the set is empty.
    """
    parts = list(_parts(node))
    if not parts:
        return ValueRange()
    lows, highs = [each.least for each in parts], [each.most for each in parts]
    least = None if None in lows else min(low for low in lows if low is not None)
    most = None if None in highs else max(high for high in highs if high is not None)
    if least is not None and most is not None and least > most:
        raise ValueError("no number is in the range")
    return ValueRange(least, most)


def _parts(node: XmlNode) -> Iterator[ValueRange]:
    for part in children(node):
        match local(part):
            case "Exact":
                epsilon = real(part.get("epsilon", "0"))
                yield ValueRange(real(word_of_node(part)) - epsilon, real(word_of_node(part)) + epsilon)
            case "LowerBoundedRange":
                yield ValueRange(least=_lower(part))
            case "UpperBoundedRange":
                yield ValueRange(most=_upper(part))
            case "Range":
                bounds = {local(each): each for each in children(part)}
                yield ValueRange(_lower(bounds.get("LowerBound")), _upper(bounds.get("UpperBound")))


def _lower(node: XmlNode | None) -> float | None:
    # What is counted is whole: bytes, seconds, processors.
    if node is None:
        return None
    bound = real(word_of_node(node))
    return math.floor(bound) + 1 if is_true(node.get("exclusiveBound")) else bound


def _upper(node: XmlNode | None) -> float | None:
    if node is None:
        return None
    bound = real(word_of_node(node))
    return math.ceil(bound) - 1 if is_true(node.get("exclusiveBound")) else bound
