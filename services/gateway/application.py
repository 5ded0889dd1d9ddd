"""The ASGI application: maps paths to endpoints, and turns every error into problem details (RFC 9457)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path

from services.gateway import (
    about,
    attempt_sandboxes,
    dashboard_files,
    event_stream,
    job_submission,
    message_forwarding,
    pilot_credentials,
    pilot_messages,
    pilot_orders,
    user_sandboxes,
)
from services.gateway.concurrent_requests import ConcurrentRequestsMiddleware
from services.gateway.dashboard_files import DashboardFiles
from services.gateway.ended_requests import EndedRequestsMiddleware
from services.gateway.openapi import document, name_of
from services.gateway.problem import MEDIA_TYPE, TITLES, ProblemDetails, headers_of, problem_of
from services.gateway.route import Route
from services.gateway.routes import OPERATIONS
from services.gateway.service_requests import Desk, ServiceRequest
from wms.errors import Rejected, Unavailable, WmsError
from wms.gateway.address import PREFIX

log = structlog.get_logger()

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

FREQUENT = (
    pilot_messages.MESSAGES.path,
    job_submission.SUBMIT.path,
    message_forwarding.COMMANDS.path,
    message_forwarding.QUERIES.path,
)
"""The paths that are asked for most. They stand first, because Starlette compares each request with one path after another."""
GZIP_BYTES = 1_000
"""Responses of at least this many bytes are compressed if the client accepts gzip."""


def application(desk: Desk) -> Starlette:
    """Return the ASGI application that serves all operations of the gateway."""
    handlers: Any = {WmsError: _refused, OSError: _cut, HTTPException: _not_served, Exception: _failed}
    return Starlette(
        routes=list(_paths(desk)),
        exception_handlers=handlers,
        middleware=[
            Middleware(EndedRequestsMiddleware, refused=_refused),
            Middleware(ConcurrentRequestsMiddleware, requests=desk.concurrent_requests),
            Middleware(GZipMiddleware, minimum_size=GZIP_BYTES, compresslevel=5),
        ],
    )


def _paths(desk: Desk) -> Iterator[BaseRoute]:
    """Yield one path for each URL, with the endpoints of all its methods. So a 405 response can list the allowed methods."""
    others = _others(desk)
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in OPERATIONS:
        served = ServiceRequest(each, desk).respond if isinstance(each, Route) else others[name_of(each)]
        by_path.setdefault(each.path, {})[each.method] = served
    for path, endpoints in sorted(by_path.items(), key=lambda each: each[0] not in FREQUENT):
        yield Path(PREFIX + path, partial(_respond, path, endpoints), methods=list(endpoints))
    files = DashboardFiles(desk.authentication)
    yield Path(dashboard_files.FILES, files.file)
    for address in dashboard_files.ADDRESSES:
        yield Path(address, files.page)


def _others(desk: Desk) -> dict[str, Endpoint]:
    """Return the endpoints of the operations that are not answered by a service's reply alone, by the operations' names."""
    files = user_sandboxes.UserSandboxes(desk)
    of_attempts = attempt_sandboxes.AttemptSandboxes(desk)
    return {
        name_of(job_submission.SUBMIT): job_submission.JobSubmission(desk).respond,
        name_of(user_sandboxes.UPLOAD): files.upload,
        name_of(user_sandboxes.OUTPUT): files.output,
        name_of(attempt_sandboxes.INPUT): of_attempts.input,
        name_of(attempt_sandboxes.OUTPUT): of_attempts.output,
        name_of(event_stream.EVENTS): event_stream.EventStreams(desk).respond,
        name_of(pilot_credentials.EXCHANGE): pilot_credentials.PilotCredentials(desk).respond,
        name_of(pilot_messages.MESSAGES): pilot_messages.PilotMessages(desk).respond,
        name_of(pilot_orders.ORDERS): pilot_orders.AttachedPilots(desk).respond,
        name_of(message_forwarding.QUERIES): message_forwarding.MessageForwarding(
            message_forwarding.QUERIES, desk
        ).respond,
        name_of(message_forwarding.COMMANDS): message_forwarding.MessageForwarding(
            message_forwarding.COMMANDS, desk
        ).respond,
        name_of(about.HEALTH): about.About(about.health(), desk).respond,
        name_of(about.OPENAPI): about.About(document(OPERATIONS), desk).respond,
    }


async def _respond(path: str, endpoints: Mapping[str, Endpoint], request: Request) -> Response:
    if (task := asyncio.current_task()) is not None:
        # So that a hold of the event loop is told with its route.
        task.set_name(f"{request.method} {path}")
    return await endpoints["GET" if request.method == "HEAD" else request.method](request)


async def _refused(_: Request, fault: WmsError) -> Response:
    assert isinstance(fault, Rejected | Unavailable)
    problem = problem_of(fault)
    return _response(problem, headers_of(fault, problem.status))


async def _cut(request: Request, error: OSError) -> Response:
    """Return the response to a request whose connection to a server broke."""
    log.warning("request cut off", error=repr(error))
    return await _refused(request, Unavailable("a server that this needs does not answer"))


async def _not_served(request: Request, fault: HTTPException) -> Response:
    """Return the response to an unknown path (404), or to a method that the path does not have (405)."""
    code = "METHOD_NOT_ALLOWED" if fault.status_code == 405 else "NO_SUCH_ROUTE"
    detail = f"nothing is served for {request.method} here"
    problem = ProblemDetails(
        title=TITLES.get(fault.status_code, "Not served"),
        status=fault.status_code,
        code=code,
        detail=detail,
        remedy=f"{PREFIX}/openapi.json lists all routes",
    )
    return _response(problem, dict(fault.headers or {}))


async def _failed(_: Request, error: Exception) -> Response:
    """Return the response with status 500 to a request that failed by a bug. The log gets the error; the response shows nothing of it."""
    log.error("request failed", error=repr(error))
    return _response(
        ProblemDetails(
            title=TITLES[500],
            status=500,
            code="INTERNAL",
            detail="the gateway failed; its log tells more",
            remedy="tell its operators",
        )
    )


def _response(problem: ProblemDetails, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(problem), problem.status, headers, MEDIA_TYPE)
