"""Fair turns among participants: the one with the least usage is next."""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
N = TypeVar("N", int, float)


def levelled(used: Mapping[K, N], names: Collection[K], nothing: N) -> dict[K, N]:
    """Return the usage of each waiting participant in `names`. One without recorded usage starts at the least usage of the others.

    So a newcomer gets no turns in compensation for the time before it came. `nothing` is the usage of all if nobody has any.
    """
    known = {each: used[each] for each in names if each in used}
    least = min(known.values(), default=nothing)
    return {each: known.get(each, least) for each in names}
