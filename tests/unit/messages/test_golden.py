"""Messages written once are read for ever: every golden file means what it meant, whatever the structs have become."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from tests.unit.messages.examples import FULL, GROWN, MINIMAL, UNIONS, kinds, topic_of
from wms.errors import Rejected
from wms.messages.wire import Codec, encode

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "data" / "messages"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
MEANINGS = {
    **{f"{tag}.json": each for tag, each in FULL.items()},
    **{f"{tag}.minimal.json": each for tag, each in MINIMAL.items()},
    **{f"{name}.json": each for name, each in GROWN.items()},
}
TAGS = sorted(str(kind.__struct_config__.tag) for union in UNIONS.values() for kind in kinds(union))


def golden(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def decode(tag: str, payload: bytes) -> Any:
    codec: Codec[Any] = Codec(UNIONS[topic_of(tag)])
    return codec.decode(payload)


def plain(message: msgspec.Struct) -> Any:
    """Return the message as any reader of its JSON sees it."""
    return json.loads(encode(message))


def tag_of(name: str) -> str:
    return name.partition(".")[0]


def test_every_message_has_golden_files_and_every_file_a_message() -> None:
    assert len(set(TAGS)) == len(TAGS), "one tag, one message, over all topics"
    assert sorted(FULL) == sorted(MINIMAL) == TAGS
    assert {tag_of(name) for name in FILES} == set(TAGS)
    assert MEANINGS.keys() == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_golden_file_means_what_it_meant(name: str) -> None:
    message = decode(tag_of(name), golden(name))
    assert type(message) is type(MEANINGS[name])
    assert plain(message) == plain(MEANINGS[name])


@pytest.mark.parametrize("tag", TAGS)
def test_what_is_written_today_is_what_the_golden_file_says(tag: str) -> None:
    """But for fields that have come since."""
    assert without_news(plain(FULL[tag]), said := json.loads(golden(f"{tag}.json"))) == said


def without_news(written: Any, said: Any) -> Any:
    if isinstance(written, dict) and isinstance(said, dict):
        return {key: without_news(value, said[key]) for key, value in written.items() if key in said}
    if isinstance(written, list) and isinstance(said, list):
        return [without_news(*pair) for pair in zip(written, said, strict=True)]
    return written


@pytest.mark.parametrize("tag", TAGS)
def test_what_need_not_be_said_has_a_default(tag: str) -> None:
    said = json.loads(golden(f"{tag}.minimal.json"))
    required = {field.encode_name for field in msgspec.structs.fields(FULL[tag]) if field.required}
    assert said.keys() == required | {"type"}


@pytest.mark.parametrize("tag", TAGS)
def test_golden_files_say_every_field(tag: str) -> None:
    """A new field needs a new golden file, `<tag>.<what is new>.json`, and its message in GROWN."""
    said = [json.loads(golden(name)) for name in FILES if tag_of(name) == tag]
    silent = [path for path in field_paths(type(FULL[tag])) if not any(holds(each, path) for each in said)]
    assert not silent


def field_paths(kind: type[msgspec.Struct], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the way to every field, those of structs inside structs too."""
    paths = []
    for field in msgspec.structs.fields(kind):
        here = (*above, field.encode_name)
        paths.append(here)
        for inner in structs_in(field.type):
            paths += field_paths(inner, here)
    return paths


def structs_in(annotation: Any) -> list[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    return [kind for part in getattr(annotation, "__args__", ()) for kind in structs_in(part)]


def holds(document: Any, path: tuple[str, ...]) -> bool:
    if not path:
        return True
    if isinstance(document, list):
        return any(holds(each, path) for each in document)
    return isinstance(document, dict) and path[0] in document and holds(document[path[0]], path[1:])


@pytest.mark.parametrize("tag", TAGS)
def test_fields_of_a_newer_writer_are_passed_over(tag: str) -> None:
    newer = add_everywhere(json.loads(golden(f"{tag}.json")))
    assert plain(decode(tag, json.dumps(newer).encode())) == plain(FULL[tag])


FREE = {"description", "counts", "requirements", "ad", "jobs", "values", "chunks"}
"""What holds any JSON, which is kept as it comes, in some message."""


def add_everywhere(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        said = {key: add_everywhere(each, key) for key, each in value.items()}
        return said if name in FREE else {**said, "added_in_2031": {"deep": [1, None]}}
    if isinstance(value, list):
        return [add_everywhere(each, name) for each in value]
    return value


@cache
def validator(topic: str) -> Any:
    schema = json.loads((ROOT / "docs" / "schema" / f"{topic}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", FILES)
def test_golden_file_obeys_the_published_schema(name: str) -> None:
    validator(topic_of(tag_of(name))).validate(json.loads(golden(name)))


@pytest.mark.parametrize("tag", TAGS)
def test_every_required_field_is_missed(tag: str) -> None:
    said = json.loads(golden(f"{tag}.minimal.json"))
    # A topic with a single message needs no tag to tell it from others.
    spare = {"type"} if len(kinds(UNIONS[topic_of(tag)])) == 1 else set()
    for field in said.keys() - spare:
        poorer = {key: value for key, value in said.items() if key != field}
        with pytest.raises(Rejected, match=f"`{field}`"):
            decode(tag, json.dumps(poorer).encode())
