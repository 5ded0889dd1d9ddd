"""Delays before a retry: growing, bounded, and different for each caller."""

from collections.abc import Callable, Iterator


def delays(base: float, cap: float, factor: float, rng: Callable[[], float]) -> Iterator[float]:
    """Yield delays in seconds without end: `base`, then `factor` times more each time up to `cap`, each shortened by up to half.

    `rng` returns numbers in [0, 1), as `random.Random().random` does. The draw spreads callers that failed together. The
    half that always remains keeps any caller from trying again at once. Raise ValueError unless 0 < base <= cap and factor
    >= 1.
    """
    if not (0 < base <= cap and factor >= 1):
        raise ValueError(f"a backoff needs 0 < base <= cap and factor >= 1, not {base}, {cap}, {factor}")
    return _jittered(base, cap, factor, rng)


def _jittered(ceiling: float, cap: float, factor: float, rng: Callable[[], float]) -> Iterator[float]:
    while True:
        yield ceiling * (1 - rng() / 2)
        ceiling = min(cap, ceiling * factor)
