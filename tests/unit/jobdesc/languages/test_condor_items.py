"""Items of `queue` statements, split as HTCondor splits them."""

import importlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.jobdesc.languages.condor_machine import MACHINE
from wms.jobdesc.languages.condor_items import items_of


@pytest.mark.parametrize(
    "said",
    ["x in (a, b)", "x, y in (a b, c)", "x y from (", "x,y,z from (", "x from (", "in a b", "3 in (a,b)"],
)
def test_items_are_those_of_htcondor(said: str) -> None:
    lines = ["1 2 3", "a,b", "a , b , c", "p\tq", "one"] if said.endswith("(") else []
    document = "\n".join(["executable = e", f"queue {said}", *lines, *([")"] if lines else []), ""])
    judged = list(importlib.import_module("htcondor2").Submit(document).itemdata())
    _, items = items_of(said, lines, None)
    assert [dict(zip(items.names, row, strict=True)) for row in items.rows] == judged


@pytest.mark.parametrize("name", ["files.txt", "any-list", "dirs_2", "table.csv"])
def test_a_file_may_begin_as_a_qualifier(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_text("one 1\ntwo 2\n")
    monkeypatch.chdir(tmp_path)
    judged = list(
        importlib.import_module("htcondor2").Submit(f"executable = e\nqueue x from {name}\n").itemdata()
    )
    _, items = items_of(f"x from {name}", (), replace(MACHINE, text=lambda path: Path(path).read_text()))
    assert (
        [dict(zip(items.names, row, strict=True)) for row in items.rows]
        == judged
        == [{"x": "one 1"}, {"x": "two 2"}]
    )
