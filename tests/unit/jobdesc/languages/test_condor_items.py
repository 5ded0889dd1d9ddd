"""Items of `queue` statements, split as HTCondor splits them."""

import importlib

import pytest

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
