"""The documents are true where a tool can tell: links lead somewhere, files named are there, generated pages are fresh."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import generate
from docs.pages.channels import CHANNELS, tag
from wms.bus.topics import SHARED
from wms.db.sql import Blocks
from wms.faultpoint import POINTS
from wms.job.reasons import Code
from wms.job.state import Event, State

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:wms|services|docs|tests|migrations|deploy|bench)/[a-z0-9_./-]*")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
VERB = re.compile(r"`wms ([a-z-]+)")


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def prose_of(name: str) -> str:
    return FENCE.sub("", text_of(name))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    plain = [LINK.sub(lambda m: m[0][1 : m[0].index("]")], heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def broken(name: str) -> Iterator[str]:
    page = ROOT / name
    for target in LINK.findall(prose_of(name)):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        place = (page.parent / path).resolve() if path else page
        outside = not place.exists() or not place.is_relative_to(ROOT)
        if outside or (anchor and anchor not in anchors(place)):
            yield target


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    assert list(broken(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_files_named_are_there(name: str) -> None:
    named = [code for code in CODE.findall(prose_of(name)) if PATH.fullmatch(code)]
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_short_enough_to_be_read_as_they_are(name: str) -> None:
    if not text_of(name).startswith(generate.MARK):
        assert [
            line for line in text_of(name).splitlines() if len(line) > 150 and not line.startswith("|")
        ] == []


@pytest.mark.parametrize("name", NAMES)
def test_headings_of_a_page_differ(name: str) -> None:
    if name == "docs/configuration.md":
        return
    headings = re.findall(r"^#+ .+$", FENCE.sub("", text_of(name)), re.MULTILINE)
    assert len(set(headings)) == len(headings)


def test_verbs_named_are_there() -> None:
    from wms.cli.app import COMMANDS

    verbs = {name for _, name, _, _ in COMMANDS}
    for name in NAMES:
        assert set(VERB.findall(text_of(name))) <= verbs, name


def test_fault_points_named_are_there() -> None:
    named = re.findall(r"WMS_FAULTPOINT=([\w.]+)", text_of("docs/operations.md"))
    assert named
    assert set(named) <= POINTS


def test_every_decision_is_listed_and_says_what_it_must() -> None:
    folder = ROOT / "docs" / "adr"
    decisions = sorted(folder.glob("0*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        said = path.read_text("utf-8")
        assert said.startswith(f"# {int(path.name[:4])}. ")
        assert path.name in (folder / "README.md").read_text("utf-8")
        for part in ("**Context.**", "**Decision.**", "**Consequences.**", "**Evidence.**"):
            assert part in said, f"{path.name}: {part}"


def test_block_names_in_the_decisions_are_there() -> None:
    named = re.findall(
        r"\[`wms/db/(\w+)\.sql`\]\([^)]*\), block `(\w+)`", "".join(text_of(name) for name in NAMES)
    )
    assert named
    for noun, block in named:
        assert block in dict(Blocks(ROOT / "wms" / "db" / f"{noun}.sql").items())


# --- generated pages -----------------------------------------------------------------------------------


def test_generated_pages_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


def test_generation_is_the_same_each_time() -> None:
    assert generate.pages() == generate.pages()


def test_a_stale_page_is_named_with_what_to_run(tmp_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_dir / "docs"
    generate.write(folder)
    assert generate.main(["--check"], folder) == 0
    (folder / "states.md").write_text("edited")
    (folder / "asyncapi.json").unlink()
    (folder / "schema" / "wms.old.topic.json").write_text("{}")
    assert generate.main(["--check"], folder) == 1
    said = capsys.readouterr().err
    for line in (
        "docs/states.md: is stale",
        "docs/asyncapi.json: is missing",
        "docs/schema/wms.old.topic.json",
    ):
        assert line in said
    assert said.count("make docs") == 3
    assert generate.main([], folder) == 0
    assert generate.main(["--check"], folder) == 0
    shutil.rmtree(folder)


def test_the_page_of_states_says_every_state_event_and_reason() -> None:
    page = text_of("docs/states.md")
    for word in (*State, *(f"| {event} |" for event in Event), *(f"`{code}`" for code in Code)):
        assert word in page


def test_the_page_of_messages_says_every_topic_message_and_field() -> None:
    page = text_of("docs/messages.md")
    assert {topic.name for topic in SHARED} <= {channel.topic.name for channel in CHANNELS}
    for channel in CHANNELS:
        assert f"## `{channel.topic.name}`" in page
        for kind in channel.kinds:
            section = page.partition(f"\n### `{tag(kind)}`\n")[2].partition("\n### ")[0]
            assert section, kind
            for field in kind.__struct_encode_fields__:
                assert f"| `{field}` |" in section, f"{kind.__name__}.{field}"


def test_the_asyncapi_document_holds_together() -> None:
    document = json.loads(text_of("docs/asyncapi.json"))
    assert document["asyncapi"] == "3.0.0"
    assert {each["address"] for each in document["channels"].values()} == {
        channel.topic.name for channel in CHANNELS
    }
    for reference in references(document):
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    assert set(
        re.findall(r"\{(\w+)\}", " ".join(each["address"] for each in document["channels"].values()))
    ) == {name for each in document["channels"].values() for name in each.get("parameters", {})}


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)
