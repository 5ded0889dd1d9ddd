"""What is served is what the OpenAPI document says: requests made from it find no fault and no answer that it does not name."""

import asyncio
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks

from services.gateway.event_stream import EVENTS
from services.gateway.openapi import document, name_of
from services.gateway.operation import Operation
from services.gateway.pilot_credentials import EXCHANGE
from services.gateway.routes import OPERATIONS
from tests.services.gateway.conftest import Door
from wms.gateway.address import PREFIX

SCHEMA = schemathesis.openapi.from_dict(document(OPERATIONS))
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
EXAMPLES = 10
APART = (EVENTS, EXCHANGE)
"""A stream without an end, and what no service here answers."""


@schemathesis.serializer("application/gzip")
def packed(_: Any, value: Any) -> bytes:
    """Return the body of an archive as it is: some bytes, which are none."""
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each not in APART], ids=name_of)
async def test_nothing_is_answered_that_the_document_does_not_say(
    door: Door, owner: str, operation: Operation
) -> None:
    described = SCHEMA[PREFIX + operation.path][operation.method]
    headers = door.headers(owner)

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=described.as_strategy())
    def look(case: Any) -> None:
        answer = case.call(base_url=door.url, headers=headers, timeout=60)
        case.validate_response(answer, checks=CHECKS)

    await asyncio.to_thread(look)
