"""Limits how many requests of one owner are handled at a time, from the token's check to the response's end."""

from collections import Counter

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.problem import TooMany

AGAIN_SECONDS = 1.0
OWNER = "wms.owner"
"""The key in a request's ASGI scope under which the owner of a counted request is stored."""


class ConcurrentRequests:
    """Counts the requests of each owner that are being handled, and refuses those beyond `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = Counter[str]()

    def enter(self, request: Request, owner: str) -> None:
        """Count a request of the owner, and mark it as counted in its scope. Raise TooMany if the owner has `most` requests already."""
        if self._count[owner] >= self._most:
            raise TooMany(f"{self._most} requests of this user are under way", AGAIN_SECONDS)
        self._count[owner] += 1
        request.scope[OWNER] = owner

    def leave(self, owner: str) -> None:
        """Count a request of the owner as ended."""
        self._count[owner] -= 1
        if not self._count[owner]:
            del self._count[owner]


class ConcurrentRequestsMiddleware:
    """ASGI middleware that counts a request as ended once its response has ended, also by an error or a disconnect."""

    def __init__(self, app: ASGIApp, requests: ConcurrentRequests) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; then count the request as ended, if it was counted."""
        try:
            await self._app(scope, receive, send)
        finally:
            if owner := scope.get(OWNER):
                self._requests.leave(owner)
