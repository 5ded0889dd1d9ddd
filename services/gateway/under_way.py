"""The requests under way: how many one owner may have at a time, from the check of the token to the last byte of the answer."""

from collections import Counter

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.problem import TooMany

AGAIN_SECONDS = 1.0
OWNER = "wms.owner"
"""Where a request keeps whose it is."""


class UnderWay:
    """Counts the requests of each owner, at most `most` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = Counter[str]()

    def enter(self, request: Request, owner: str) -> None:
        """Count a request in, until its answer has ended. TooMany: the owner has as many under way as may be."""
        if self._count[owner] >= self._most:
            raise TooMany(f"{self._most} requests of this user are under way", AGAIN_SECONDS)
        self._count[owner] += 1
        request.scope[OWNER] = owner

    def leave(self, owner: str) -> None:
        """Count a request out."""
        self._count[owner] -= 1
        if not self._count[owner]:
            del self._count[owner]


class UnderWayMiddleware:
    """Counts a request out once its answer has ended, however it ends."""

    def __init__(self, app: ASGIApp, under_way: UnderWay) -> None:
        self._app = app
        self._under_way = under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._app(scope, receive, send)
        finally:
            if owner := scope.get(OWNER):
                self._under_way.leave(owner)
