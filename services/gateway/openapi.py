"""Generates the OpenAPI 3.1 document of all operations from the struct types of their parameters, bodies and responses."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from services.gateway import byte_range
from services.gateway.conditional_requests import HEADER, NOT_MODIFIED
from services.gateway.operation import JSON_TYPE, STREAM_TYPE, Operation
from services.gateway.problem import MEDIA_TYPE, STATUSES, TITLES, ProblemDetails
from services.gateway.request_parsing import ID_HEADER
from wms import __version__
from wms.gateway.address import PREFIX
from wms.gateway.direct_download import PREFERENCE, REDIRECTED

Json = dict[str, Any]
REF: Final = "#/components/schemas/{name}"
OUT_OF_RANGE: Final = 416
OF_BODIES: Final = frozenset({408, 413, 415})
"""The HTTP error statuses that only requests with a body can get: body too slow, too large, or of a wrong media type."""


def document(operations: Sequence[Operation]) -> Json:
    """Return the OpenAPI document that describes these operations. It depends on nothing but them and the version."""
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wms",
            "version": __version__,
            "description": "The gateway: submit jobs, follow them, and order about them, under your own token.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "responses": {str(status): _problem(status) for status in sorted((*STATUSES, OUT_OF_RANGE))},
            "schemas": _schemas(operations),
        },
    }


def _operation(each: Operation) -> Json:
    said: Json = {
        "operationId": name_of(each),
        "summary": each.summary,
        "tags": [each.path.split("/")[1]],
        "parameters": _parameters(each),
        "responses": {str(each.status): _answer(each), **_same(each), **_partial(each), **_problems(each)},
    }
    if each.body is not None:
        said["requestBody"] = {
            "required": True,
            "content": {kind: _content(kind, each.body) for kind in each.body_types},
        }
    if each.is_public:
        said["security"] = []
    return said


def name_of(each: Operation) -> str:
    """Return the id of an operation: its method and the words of its path, such as `get_jobs`."""
    words = [word.strip("{}").replace("-", "_") for word in each.path.split("/") if word]
    return "_".join([each.method.lower(), *(word.replace(".", "_") for word in words)])


def _parameters(each: Operation) -> list[Json]:
    _, parts = msgspec.json.schema_components([each.parameters], ref_template=REF)
    table = parts[each.parameters.__name__]
    found = [_parameter(each, name, schema) for name, schema in table.get("properties", {}).items()]
    if each.goes_on:
        found.append(_LAST_EVENT)
    if _is_conditional(each):
        found.append(_MARK)
    if each.in_ranges:
        found += (_RANGE, _PREFER)
    return found if each.method == "GET" else [*found, _ID]


def _is_conditional(each: Operation) -> bool:
    return each.method == "GET" and each.answer_type != STREAM_TYPE


def _same(each: Operation) -> Json:
    if not _is_conditional(each):
        return {}
    return {str(NOT_MODIFIED): {"description": "The answer has the mark that the request names."}}


def _partial(each: Operation) -> Json:
    if not each.in_ranges:
        return {}
    return {
        "206": {
            "description": "The part of the archive that `Range` asks for.",
            "headers": {"Content-Range": {"schema": {"type": "string"}}},
            "content": {each.answer_type: _content(each.answer_type, each.answer)},
        },
        str(REDIRECTED): {
            "description": "Where the store itself gives the archive, for a few minutes.",
            "headers": {"Location": {"schema": {"type": "string", "format": "uri"}}},
        },
        str(OUT_OF_RANGE): {"$ref": f"#/components/responses/{OUT_OF_RANGE}"},
    }


_RANGE: Final[Json] = {
    "name": byte_range.HEADER,
    "in": "header",
    "description": "The part of the archive to send. Several parts at once are not served: then the whole archive is sent.",
    "schema": {"type": "string", "pattern": f"^({byte_range.PATTERN})$"},
}


_PREFER: Final[Json] = {
    "name": "prefer",
    "in": "header",
    "description": "Asks for a redirect to the store, if the store signs URLs.",
    "schema": {"type": "string", "enum": [PREFERENCE]},
}


_MARK: Final[Json] = {
    "name": HEADER,
    "in": "header",
    "description": "The marks (`ETag`) of answers that the reader has; such an answer is not sent again.",
    "schema": {"type": "string", "maxLength": 1_000, "pattern": "^[ -~]*$"},
}


_ID: Final[Json] = {
    "name": ID_HEADER,
    "in": "header",
    "description": "The id under which the request takes effect once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 180, "pattern": "^[ -~]+$"},
}


_LAST_EVENT: Final[Json] = {
    "name": "last-event-id",
    "in": "header",
    "description": "The id of the last event that was received; what came after it is sent.",
    "schema": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9]{1,18}){4}$"},
}


def _parameter(each: Operation, name: str, schema: Json) -> Json:
    in_path = name in each.in_path
    return {
        "name": name,
        "in": "path" if in_path else "query",
        **({"required": True} if in_path else {}),
        "schema": _single(schema),
    }


def _single(schema: Json) -> Json:
    """Return the schema of a query parameter. If it allows null, leave out null and the default, since a parameter cannot be null."""
    if "anyOf" not in schema:
        return schema
    (kind,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return {**kind, **{key: value for key, value in schema.items() if key not in {"anyOf", "default"}}}


def _answer(each: Operation) -> Json:
    said: Json = {"description": each.summary}
    if _is_conditional(each):
        said["headers"] = {"ETag": {"description": "The mark of this answer.", "schema": {"type": "string"}}}
    if each.status != 204:
        said["content"] = {each.answer_type: _content(each.answer_type, each.answer)}
    return said


def _content(media_type: str, kind: Any) -> Json:
    if media_type != JSON_TYPE or kind is None:
        return {"schema": {"type": "string"}}
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return {"schema": schema}


def _problems(each: Operation) -> Json:
    statuses: Sequence[int] = (
        STATUSES if each.body is not None else [one for one in STATUSES if one not in OF_BODIES]
    )
    if each.is_public and each.body is None:
        statuses = (429,)
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}


def _problem(status: int) -> Json:
    said: Json = {
        "description": TITLES[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(name=ProblemDetails.__name__)}}},
    }
    if status in (429, 503):
        what = "Seconds after which to ask again"
        said["headers"] = {"Retry-After": {"description": what, "schema": {"type": "integer"}}}
    return said


def kinds_of(operations: Sequence[Operation]) -> list[Any]:
    """Return the types of all request and response bodies of the operations, without repetitions."""
    kinds: dict[str, Any] = {repr(ProblemDetails): ProblemDetails}
    for each in operations:
        kinds.update({repr(kind): kind for kind in (each.body, each.answer) if kind is not None})
    return list(kinds.values())


def _schemas(operations: Sequence[Operation]) -> Json:
    _, parts = msgspec.json.schema_components(kinds_of(operations), ref_template=REF)
    return dict(sorted(parts.items()))
