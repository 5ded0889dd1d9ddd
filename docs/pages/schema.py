"""`docs/schema/*.json` and `docs/asyncapi.json`: the messages for programs."""

import json
from typing import Any

import msgspec

from docs.pages.channels import CHANNELS, Channel, tag
from docs.pages.structs import Kind, below, field_docs, prose
from wms import __version__
from wms.bus.kafka import HEADER

Json = dict[str, Any]


def topic_schema(channel: Channel) -> str:
    """Return the JSON Schema (2020-12) of one topic's messages."""
    (union,), parts = msgspec.json.schema_components([channel.union], ref_template="#/$defs/{name}")
    named = described(parts, channel.kinds)
    return text(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": channel.topic.name,
            "description": flat(prose(channel.module)),
            **union,
            "$defs": named,
        }
    )


def file_name(channel: Channel) -> str:
    """Return the schema's file name."""
    return channel.topic.name.replace("{", "").replace("}", "") + ".json"


def asyncapi() -> str:
    """Return the AsyncAPI 3.0 document of all topics."""
    return text(
        {
            "asyncapi": "3.0.0",
            "info": {
                "title": "wms",
                "version": __version__,
                "description": "What services, job agents and users' tools say to each other over Kafka.",
                "license": {"name": "Apache-2.0"},
            },
            "defaultContentType": "application/json",
            "channels": {_name(channel): _channel(channel) for channel in CHANNELS},
            "operations": dict(pair for channel in CHANNELS for pair in _operations(channel)),
            "components": {"messages": _messages(), "schemas": _schemas()},
        }
    )


def _name(channel: Channel) -> str:
    words = channel.topic.name.replace("{", "").replace("}", "").split(".")[1:]
    return words[0] + "".join(map(str.capitalize, words[1:]))


def _channel(channel: Channel) -> Json:
    said: Json = {
        "address": channel.topic.name,
        "description": flat(prose(channel.module)),
        "messages": {tag(kind): {"$ref": f"#/components/messages/{tag(kind)}"} for kind in channel.kinds},
        "bindings": {
            "kafka": {
                "partitions": channel.topic.partitions,
                "topicConfiguration": {"cleanup.policy": ["compact"]}
                if channel.topic.is_compacted
                else {"retention.ms": channel.topic.retention_hours * 3_600_000},
            }
        },
    }
    if channel.parameter:
        what = f"The slug of the {channel.parameter}'s name (`slug` in wms/ids.py)."
        said["parameters"] = {channel.parameter: {"description": what}}
    return said


def _operations(channel: Channel) -> list[tuple[str, Json]]:
    """One operation for each direction that an outsider may take part in."""
    name = _name(channel)
    where = {"channel": {"$ref": f"#/channels/{name}"}}
    write = {"action": "send", **where, "summary": f"Written by: {channel.writers}."}
    read = {"action": "receive", **where, "summary": f"Read by: {channel.readers}."}
    return [(f"{name}Write", write), (f"{name}Read", read)]


def _messages() -> Json:
    return {tag(kind): _message(channel, kind) for channel in CHANNELS for kind in channel.kinds}


def _message(channel: Channel, kind: Kind) -> Json:
    said: Json = {
        "name": tag(kind),
        "title": kind.__name__,
        "description": flat(prose(kind)),
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
    }
    if channel.bearer:
        what = f"`Bearer ` and a token of kind: {channel.bearer}."
        said["headers"] = {
            "type": "object",
            "required": [HEADER],
            "properties": {HEADER: {"type": "string", "description": what}},
        }
    return said


def _schemas() -> Json:
    kinds = [kind for channel in CHANNELS for kind in channel.kinds]
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    named = described(parts, tuple(kinds))
    return {name: _draft_07(schema) for name, schema in named.items()}


def _draft_07(schema: Any) -> Any:
    """Return a schema in the draft that AsyncAPI takes by default: pairs are said in another way there."""
    if isinstance(schema, list):
        return [_draft_07(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    said = {key: _draft_07(value) for key, value in schema.items()}
    if "prefixItems" in said:
        said["additionalItems"] = said.pop("items", True)
        said["items"] = said.pop("prefixItems")
    return said


def described(parts: Json, kinds: tuple[Kind, ...]) -> Json:
    """Add the fields' docstrings, which msgspec does not keep, and put all in the order of names."""
    structs = {each.__name__: each for kind in kinds for each in (kind, *below(kind))}
    for name, kind in structs.items():
        parts[name]["description"] = flat(prose(kind))
        for field, text in field_docs(kind).items():
            parts[name]["properties"][field]["description"] = text
    return dict(sorted(parts.items()))


def flat(prose_text: str) -> str:
    """Return a docstring as one line."""
    return " ".join(prose_text.split())


def text(document: Json) -> str:
    """Return a document as it is written to its file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
