"""How a consumer works: how large its batches are, how many run at a time, how long they may take, and whether owners take turns."""

import msgspec


class ConsumerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How one consumer works: the limits of its batches, its number of lanes, its time limit, and whether owners take turns."""

    batch: int = 1_024
    """The most messages that are handled in one transaction."""
    batch_bytes: int = 4_194_304
    """The most bytes of payloads in a batch. A larger message is a batch by itself."""
    lanes: int = 1
    """Into how many lanes, or groups, the partitions are divided. Lanes work in parallel, each with one transaction at a time."""
    seconds: float = 60.0
    """How many seconds a handler may take for a batch; then its transaction is rolled back."""
    is_fair: bool = False
    """Whether owners take turns: the messages of an owner that used much time are parked in the database while others wait."""


ONE_LANE = ConsumerSettings()
