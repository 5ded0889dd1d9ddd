import pytest
from lxml import etree

from wms.jobdesc.languages.jsdl.node_path import PathBudget, find

ROOT = etree.fromstring(
    '<d xmlns:p="urn:p"><p:a n="1">one</p:a><p:a n="2">two</p:a><b><a>three</a><p:c p:q="x">four</p:c></b></d>'
)


def texts(path: str) -> list[str]:
    return [each.value() for each in find(ROOT, path, {"p": "urn:p"}, PathBudget())]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/d/p:a", ["one", "two"]),
        ("//p:a[2]", ["two"]),
        ("//a", ["one", "two", "three"]),
        ("d/b/*", ["three", "four"]),
        ("b/a", ["three"]),
        ("//p:a[@n='2']", ["two"]),
        ('//*[local-name()="c"]/text()', ["four"]),
        ("//p:a[last()]/@n", ["2"]),
        ("/d/*/p:c/@p:q", ["x"]),
        ("//p:none", []),
    ],
)
def test_paths_lead_to_nodes(path: str, found: list[str]) -> None:
    assert texts(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "",
        "//",
        "//a[",
        "//x:a",
        "count(//a)",
        "//a | //b",
        "//a/text()/b",
        "//a[1 + 1]",
        "/a" * 21,
        "a" * 2_000,
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        texts(path)


def test_a_path_has_a_budget() -> None:
    with pytest.raises(ValueError, match="too many nodes"):
        find(ROOT, "//*//*//*", {}, PathBudget(20))


def test_a_value_is_assigned_to_texts_and_attributes() -> None:
    root = etree.fromstring('<a b="1"><c/>x</a>')
    for path in ("/a", "/a/@b"):
        [target] = find(root, path, {}, PathBudget())
        target.assign("new")
    assert etree.tostring(root) == b'<a b="new">new</a>'


def test_a_part_of_a_text_is_assigned_alone() -> None:
    root = etree.fromstring("<a><b>file-00.dat</b></a>")
    [found] = find(root, "substring(/a/b, 6, 2)", {}, PathBudget())
    assert found.value() == "00"
    found.assign("123")
    assert root[0].text == "file-123.dat"
    found.assign("7")
    assert root[0].text == "file-7.dat"


@pytest.mark.parametrize(
    "path",
    ["substring(/a/b)", "substring(/a/b, 0)", "substring(substring(/a/b, 1), 1)", "substring(/a/b, x)"],
)
def test_other_parts_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"part|path"):
        find(etree.fromstring("<a><b>x</b></a>"), path, {}, PathBudget())
