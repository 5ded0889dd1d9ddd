"""What a document may expand to: the values of its series, and the bytes of defaults that are copied into each job.

Both are counted arithmetically and refused before anything is expanded.
"""

from typing import Final

from wms.errors import Rejected

SERVICE_VALUES: Final = 10_000
SERVICE_BYTES: Final = 16 * 1024 * 1024
"""What a document may expand to that a service reads for a user."""


class Expansion:
    """How many values and bytes one document may still expand to. One object is used for one document.

    The default is for documents on their own user's machine. A service gives less, since its processor belongs to all.
    """

    def __init__(self, values: int = 4_000_000, size: int = 1024**3) -> None:
        """Allow `values` values of series, and `size` bytes."""
        self._values = self._values_limit = values
        self._size = self._size_limit = size

    def take(self, values: int, size: int) -> None:
        """Count values of series, and bytes. Raise Rejected (EXPANDS_TOO_FAR) if the document may not expand so far."""
        self._values -= values
        self._size -= size
        if self._values < 0:
            raise _too_far(f"more than {self._values_limit:,} values by its series", "series")
        if self._size < 0:
            raise _too_far(
                f"more than {self._size_limit:,} bytes by its series and defaults", "series and defaults"
            )


def at_a_service() -> Expansion:
    """Return what a document may expand to that a service reads for a user."""
    return Expansion(values=SERVICE_VALUES, size=SERVICE_BYTES)


def _too_far(what: str, cause: str) -> Rejected:
    remedy = f"send fewer jobs, or `wms submit` it, which expands {cause} on your own machine"
    return Rejected("EXPANDS_TOO_FAR", f"the document would expand to {what}", remedy)
