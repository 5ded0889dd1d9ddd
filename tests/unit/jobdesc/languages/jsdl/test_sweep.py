from typing import Any

import pytest
from lxml import etree

from wms.jobdesc.languages.jsdl.namespaces import FUNCTION, SWEEP
from wms.jobdesc.languages.jsdl.sweep import SweepFault, plan_of


def rows(text: str) -> list[list[str]]:
    root = _root(text)
    return [
        [row.get(target, "-") for target in plan_of(root, list(root)[2:]).targets]
        for row in _plan(root).rows()
    ]


def _root(text: str) -> Any:
    return etree.fromstring(f'<d xmlns:s="{SWEEP}" xmlns:f="{FUNCTION}"><a>0</a><b>0</b>{text}</d>')


def _plan(root: Any) -> Any:
    return plan_of(root, list(root)[2:])


def assign(path: str, *values: str) -> str:
    made = "".join(f"<f:Value>{value}</f:Value>" for value in values)
    return f"<s:Assignment><s:Parameter>{path}</s:Parameter><f:Values>{made}</f:Values></s:Assignment>"


def loop(path: str, said: str, inner: str = "") -> str:
    return f"<s:Assignment><s:Parameter>{path}</s:Parameter><f:Loop {said}>{inner}</f:Loop></s:Assignment>"


def sweep(*parts: str) -> str:
    return f"<s:Sweep>{''.join(parts)}</s:Sweep>"


def test_assignments_of_a_sweep_change_together() -> None:
    assert rows(sweep(assign("//a", "1", "2"), assign("//b", "x", "y"))) == [["1", "x"], ["2", "y"]]


def test_a_sweep_within_runs_through_for_each_step() -> None:
    found = rows(sweep(assign("//a", "1", "2"), sweep(assign("//b", "x", "y"))))
    assert found == [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]


def test_sweeps_beside_each_other_run_one_after_another() -> None:
    assert rows(sweep(assign("//a", "1")) + sweep(assign("//b", "x", "y"))) == [
        ["1", "-"],
        ["-", "x"],
        ["-", "y"],
    ]


def test_loops_leave_out_exceptions() -> None:
    found = rows(
        sweep(loop("//a", 'start="1" end="7" step="2"', '<f:Exception value="3"/><f:Exception value="4"/>'))
    )
    assert found == [["1"], ["5"], ["7"]]
    assert rows(sweep(loop("//a", 'f:start="-1" f:end="0"'))) == [["-1"], ["0"]]


@pytest.mark.parametrize(
    "text",
    [
        sweep(loop("//a", 'start="1" end="999999999999999999"')),
        sweep(loop("//a", f'start="1" end="{"9" * 9000}"')),
        sweep(loop("//a", 'start="1" end="1000"'), sweep(loop("//b", 'start="1" end="1001"'))),
        sweep(loop("//a", 'start="2" end="1"')),
        sweep(loop("//a", 'start="1" end="2" step="0"')),
        sweep(assign("//a", "1", "2"), assign("//b", "x")),
        sweep(assign("//c", "1")),
        sweep(assign("//a[", "1")),
        sweep(assign("//a", "x" * 3_000_000), sweep(loop("//b", 'start="1" end="100"'))),
        sweep(),
    ],
)
def test_bombs_and_faults_are_refused_before_a_value_is_made(text: str) -> None:
    with pytest.raises(SweepFault):
        _plan(_root(text))


def test_a_deep_product_is_counted_and_not_made() -> None:
    bomb = ""
    for _ in range(50):
        bomb = sweep(loop("//a", 'start="1" end="1000"'), bomb)
    with pytest.raises(SweepFault, match="jobs"):
        _plan(_root(bomb))
