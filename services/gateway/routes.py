"""All routes that ask a service."""

from typing import Final

from services.gateway import job_routes, place_routes, rule_routes
from services.gateway.route import Route

ROUTES: Final[tuple[Route, ...]] = (*job_routes.ROUTES, *place_routes.ROUTES, *rule_routes.ROUTES)
