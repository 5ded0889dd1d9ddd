"""Fairness of turns: how much each of those that take turns has used, so that who used least is next."""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
N = TypeVar("N", int, float)


def levelled(used: Mapping[K, N], names: Collection[K], nothing: N) -> dict[K, N]:
    """Return what those that wait have used; who comes anew begins where the others are: what was not used before is no claim."""
    known = {each: used[each] for each in names if each in used}
    least = min(known.values(), default=nothing)
    return {each: known.get(each, least) for each in names}
