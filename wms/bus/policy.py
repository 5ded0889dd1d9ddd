"""The policy of a consumer: batch sizes, lanes, time limits and turns of owners."""

import msgspec


class ConsumerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a consumer divides its work."""

    batch: int = 1_024
    """Messages of a batch at most."""
    batch_bytes: int = 4_194_304
    """Bytes of a batch at most, but for a single message."""
    lanes: int = 1
    """Groups of its partitions that are handled concurrently, each with one transaction at a time."""
    seconds: float = 60.0
    """The longest that one transaction may take before it is rolled back."""
    is_fair: bool = False
    """Whether owners take turns: messages of one that uses much are parked while others wait."""


ONE_LANE = ConsumerPolicy()
