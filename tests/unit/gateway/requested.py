"""Requests as the server hands them to endpoints."""

from typing import Any

from starlette.requests import Request


def a_request(
    query: str = "", path: dict[str, str] | None = None, client: str = "192.0.2.7", **headers: str
) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": query.encode(),
        "path_params": path or {},
        "client": (client, 1234),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    return Request(scope)


def a_sent_request(*pieces: bytes, **headers: str) -> Request:
    """Return a request whose body comes in these pieces, and then ends."""
    left = list(pieces)

    async def receive() -> dict[str, Any]:
        if not left:
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    return Request(a_request("", None, "192.0.2.7", **headers).scope, receive)
