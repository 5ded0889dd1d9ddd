"""The policy of a consumer: how it divides its work."""

import msgspec


class ConsumerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a consumer divides its work."""

    batch: int = 1_024
    """Messages of a batch at most."""
    batch_bytes: int = 4_194_304
    """Bytes of a batch at most, but for a single message."""
    lanes: int = 1
    """Parts of its partitions that are handled side by side, each with one transaction at a time."""
    seconds: float = 60.0
    """What one transaction may take before it is undone."""
    is_fair: bool = False
    """Whether owners take turns: one that uses much waits aside when others wait."""


ONE_LANE = ConsumerPolicy()
