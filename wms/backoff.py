"""Delays before a retry: growing, bounded, and different for each caller."""

from collections.abc import Callable, Iterator


def delays(base: float, cap: float, factor: float, rng: Callable[[], float]) -> Iterator[float]:
    """Yield delays in seconds without end: first `base`, then each `factor` times the previous one, at most `cap`. Each is shortened by up to half.

    `rng` returns random numbers in [0, 1), which decide how much is cut. So callers that failed together do not retry together. At least half of a
    delay remains, so no caller retries at once. Raise ValueError unless 0 < base <= cap and factor >= 1.
    """
    if not (0 < base <= cap and factor >= 1):
        raise ValueError(f"a backoff needs 0 < base <= cap and factor >= 1, not {base}, {cap}, {factor}")
    return _jittered(base, cap, factor, rng)


def _jittered(ceiling: float, cap: float, factor: float, rng: Callable[[], float]) -> Iterator[float]:
    while True:
        yield ceiling * (1 - rng() / 2)
        ceiling = min(cap, ceiling * factor)
