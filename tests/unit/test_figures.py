"""The figures of the code are what they are to be, and a code that falls short of one is told which."""

import ast
from pathlib import Path

import pytest

from tests import figures
from tests.figures import LONG, UNTESTED, Module, body_lines, defined_twice, listed, measured, untested


def test_the_code_keeps_its_figures() -> None:
    assert measured().faults(listed(UNTESTED), listed(LONG)) == []


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("return 1", 1),
        ('"""Do."""', 0),
        ('"""Do.\n\n    And say so.\n    """\n    first()\n\n    return second(\n        1,\n    )', 5),
    ],
)
def test_a_function_is_as_long_as_its_body_without_its_docstring(body: str, lines: int) -> None:
    (function,) = ast.parse(f"def work():\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert body_lines(function) == lines


def module(path: str, text: str = "") -> Module:
    return Module(Path(path), text)


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("wms/matching/shares.py", "tests/unit/matching/test_shares.py"),
        ("services/matcher/ads.py", "tests/services/matcher/test_ads.py"),
        ("wms/db/pilot.py", "tests/db/test_pilot.py"),
        ("wms/job/constraint.py", "tests/db/job/test_constraint.py"),
        ("wms/ids.py", "tests/unit/test_ids.py"),
    ],
)
def test_a_module_has_a_test_where_one_layer_has_one_of_its_name(
    tmp_path: Path, path: str, test: str
) -> None:
    assert untested([module(path)], tmp_path) == {path}
    (tmp_path / test).parent.mkdir(parents=True)
    (tmp_path / test).touch()
    assert untested([module(path)], tmp_path) == set()


def test_a_test_in_the_folder_of_another_package_is_none(tmp_path: Path) -> None:
    (tmp_path / "tests/unit/glue").mkdir(parents=True)
    (tmp_path / "tests/unit/glue/test_ad.py").touch()
    assert untested([module("wms/classad/ad.py")], tmp_path) == {"wms/classad/ad.py"}


def test_what_only_puts_others_together_needs_no_test() -> None:
    wires = "from wms import ids\n\ndef main():\n    return ids\n"
    decides = "def main(wanted):\n    if wanted:\n        return 1\n    return 0\n"
    assert not module("services/matcher/__main__.py", wires).is_to_be_tested
    assert module("services/matcher/__main__.py", decides).is_to_be_tested
    assert module("services/matcher/ads.py", wires).is_to_be_tested


@pytest.mark.parametrize(
    ("docstring", "lines", "long"),
    [
        ("A noun.", 400, False),
        ("A noun.", 401, True),
        ("A noun. It has more than 400 lines as it is run by its path.", 401, False),
    ],
)
def test_a_file_is_long_unless_it_says_why(docstring: str, lines: int, *, long: bool) -> None:
    assert module("wms/ids.py", f'"""{docstring}"""\n' + "x = 1\n" * (lines - 1)).is_long == long


def test_a_class_is_defined_twice_if_two_modules_show_it_to_others() -> None:
    shown, hidden = "class Place:\n    pass\n", "class _Place:\n    pass\n"
    assert defined_twice([module("wms/a.py", shown), module("wms/b.py", hidden)]) == {}
    assert defined_twice([module("wms/a.py", shown), module("wms/b.py", shown)]) == {
        "Place": ["wms/a.py", "wms/b.py"]
    }


def code(root: Path, *, body: str = "return 1") -> None:
    for each in ("wms/one.py", "services/two.py"):
        (root / each).parent.mkdir(exist_ok=True)
        (root / each).write_text(f"def work():\n    {body}\n\n\ndef rest():\n    return 2\n")
    (root / "tests/unit").mkdir(parents=True)
    (root / "tests/unit/test_one.py").touch()


def test_what_falls_short_and_is_on_no_list_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "TWICE", {})
    monkeypatch.setattr(figures, "LEAST_TESTED", 0.0)
    code(tmp_path, body="\n    ".join("one()" for _ in range(40)))
    assert measured(tmp_path).faults(set(), set()) == [
        "the median function has 20.5 lines, over 6",
        "nine in ten functions have up to 40 lines, over 16",
        "services/two.py: has no test of its name",
    ]


def test_what_is_mended_leaves_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "TWICE", {})
    monkeypatch.setattr(figures, "LEAST_TESTED", 0.0)
    code(tmp_path)
    (tmp_path / UNTESTED).write_text("services/two.py\nwms/gone.py\nwms/one.py\n")
    (tmp_path / LONG).write_text("wms/one.py\n")
    found = measured(tmp_path)
    assert found.faults(listed(UNTESTED, tmp_path), listed(LONG, tmp_path)) == [
        "wms/gone.py: leaves tests/untested_modules.txt, try --shrink",
        "wms/one.py: leaves tests/untested_modules.txt, try --shrink",
        "wms/one.py: leaves tests/long_files.txt, try --shrink",
    ]
    figures.shrink(found, tmp_path)
    assert (listed(UNTESTED, tmp_path), listed(LONG, tmp_path)) == ({"services/two.py"}, set())
    assert found.faults(listed(UNTESTED, tmp_path), listed(LONG, tmp_path)) == []


def test_too_few_modules_with_a_test_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "TWICE", {})
    code(tmp_path)
    monkeypatch.setattr(figures, "LEAST_TESTED", 0.5)
    assert measured(tmp_path).faults({"services/two.py"}, set()) == []
    monkeypatch.setattr(figures, "LEAST_TESTED", 0.51)
    assert measured(tmp_path).faults({"services/two.py"}, set()) == [
        "only 1 of 2 modules have a test of their name"
    ]
