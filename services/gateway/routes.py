"""The list of all operations of the gateway, and the list of those that are routes (one message to a service)."""

from typing import Final

from services.gateway import (
    about,
    attempt_files,
    dead_letter_routes,
    event_stream,
    job_routes,
    passing,
    pilot_credentials,
    pilot_messages,
    pilot_orders,
    place_routes,
    report_routes,
    rule_routes,
    sandboxes,
    submitting,
)
from services.gateway.operation import Operation
from services.gateway.route import Route

ROUTES: Final[tuple[Route, ...]] = (
    *job_routes.ROUTES,
    *place_routes.ROUTES,
    *rule_routes.ROUTES,
    *report_routes.ROUTES,
    *dead_letter_routes.ROUTES,
)
OPERATIONS: Final[tuple[Operation, ...]] = (
    submitting.SUBMIT,
    *ROUTES,
    sandboxes.UPLOAD,
    sandboxes.OUTPUT,
    attempt_files.INPUT,
    attempt_files.OUTPUT,
    event_stream.EVENTS,
    pilot_credentials.EXCHANGE,
    pilot_messages.MESSAGES,
    pilot_orders.ORDERS,
    passing.QUERIES,
    passing.COMMANDS,
    about.HEALTH,
    about.OPENAPI,
)
