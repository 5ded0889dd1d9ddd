"""Calls to computing elements that run beside a loop, so that no slow element delays what the loop does for others."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from services.pilot_submitter.ce_endpoints import CeEndpoint
from wms.ids import CeId

PATIENCE_SECONDS = 0.2
"""How long a round of a loop waits for elements, in seconds. Then the loop goes on, and calls that have not ended run beside it."""
WHOLE_SECONDS = 120.0
"""Longer than any call to an element: a loop with such a patience waits for all."""


class ElementCalls:
    """The calls of one loop to elements, at most one at a time for each endpoint. So there are never more calls than endpoints."""

    def __init__(self, patience_seconds: float = WHOLE_SECONDS) -> None:
        """Build the calls of a loop; a round waits `patience_seconds` for the calls that it begins."""
        self._patience_seconds = patience_seconds
        self._running: dict[CeEndpoint, asyncio.Task[None]] = {}

    def is_busy(self, endpoint: CeEndpoint) -> bool:
        """Return whether a call through this endpoint has not ended."""
        return endpoint in self._running and not self._running[endpoint].done()

    def busy(self) -> frozenset[CeId]:
        """Return the ids of the elements with a call that has not ended."""
        return frozenset(endpoint.place for endpoint in self._running if self.is_busy(endpoint))

    async def run(self, calls: Mapping[CeEndpoint, Coroutine[Any, Any, None]]) -> None:
        """Begin a call through each of these endpoints, none of which may be busy, and wait for them with patience.

        Raise the error of a call that has failed, also of one from an earlier round.
        """
        begun = {endpoint: asyncio.create_task(call) for endpoint, call in calls.items()}
        self._running.update(begun)
        if begun:
            await asyncio.wait(begun.values(), timeout=self._patience_seconds)
        ended = [
            self._running.pop(endpoint) for endpoint in list(self._running) if not self.is_busy(endpoint)
        ]
        errors = [error for each in ended if (error := each.exception())]
        if errors:
            raise errors[0]
