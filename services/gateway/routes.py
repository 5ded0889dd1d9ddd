"""The list of all operations of the gateway, and the list of those that are routes (one message to a service)."""

from typing import Final

from services.gateway import (
    about,
    access_routes,
    attempt_sandboxes,
    dead_letter_routes,
    event_stream,
    job_routes,
    job_submission,
    message_forwarding,
    overview_routes,
    pilot_credentials,
    pilot_messages,
    pilot_orders,
    rule_routes,
    site_routes,
    user_sandboxes,
)
from services.gateway.operation import Operation
from services.gateway.route import Route

ROUTES: Final[tuple[Route, ...]] = (
    *job_routes.ROUTES,
    *site_routes.ROUTES,
    *rule_routes.ROUTES,
    *overview_routes.ROUTES,
    *access_routes.ROUTES,
    *dead_letter_routes.ROUTES,
)
OPERATIONS: Final[tuple[Operation, ...]] = (
    job_submission.SUBMIT,
    *ROUTES,
    user_sandboxes.UPLOAD,
    user_sandboxes.OUTPUT,
    attempt_sandboxes.INPUT,
    attempt_sandboxes.OUTPUT,
    event_stream.EVENTS,
    pilot_credentials.EXCHANGE,
    pilot_messages.MESSAGES,
    pilot_orders.ORDERS,
    message_forwarding.QUERIES,
    message_forwarding.COMMANDS,
    about.HEALTH,
    about.OPENAPI,
)
