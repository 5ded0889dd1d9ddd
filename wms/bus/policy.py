"""The policy of a consumer: batch sizes, lanes, time limits and turns of owners."""

import msgspec


class ConsumerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The batch limits, lanes and time limits of a consumer."""

    batch: int = 1_024
    """The most messages in a batch."""
    batch_bytes: int = 4_194_304
    """The most bytes in a batch; a single larger message is a batch too."""
    lanes: int = 1
    """The number of groups of partitions that are handled concurrently, each with one transaction at a time."""
    seconds: float = 60.0
    """The longest duration of a handler's transaction in seconds; after it the transaction is rolled back."""
    is_fair: bool = False
    """Whether owners take turns: messages of an owner over its budget are parked while other owners wait."""


ONE_LANE = ConsumerPolicy()
