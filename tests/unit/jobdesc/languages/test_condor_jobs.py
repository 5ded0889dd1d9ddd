"""Jobs of a `queue` statement: templates, columns and groups."""

import pytest

from wms.jobdesc.expansion import Expansion
from wms.jobdesc.languages.condor_jobs import (
    PROCESS,
    QueuedJobs,
    columns_of,
    groups,
    mark,
    parameter_names,
    with_placeholders,
)
from wms.jobdesc.languages.condor_macros import MacroError
from wms.jobdesc.languages.condor_text import parse


def queued(queue: str, first: int = 0) -> QueuedJobs:
    [statement] = parse(f"w = $(x)/$(Process)\nqueue {queue}")
    return QueuedJobs(statement, None, first, Expansion())


def test_a_template_marks_what_differs() -> None:
    jobs = queued("x in (a, b)", first=5)
    text = jobs.template("<$(w)>")
    assert [*columns_of(text)] == ["x", PROCESS]
    assert [jobs.filled(text, each) for each in range(2)] == ["<a/5>", "<b/6>"]
    assert jobs.is_template(text)


def test_values_with_blanks_make_no_template() -> None:
    jobs = queued("x from (\na b\nc\n)")
    assert not jobs.is_template(jobs.template("$(x)"))


def test_names_of_parameters_differ() -> None:
    names = parameter_names(["n", "a.b", "a_b", PROCESS], is_whole=False)
    assert names == {PROCESS: "Process", "a.b": "a_b", "a_b": "a_b_", "n": "n_"}
    assert parameter_names([PROCESS], is_whole=True) == {PROCESS: "n"}


def test_braces_of_the_author_stay() -> None:
    assert with_placeholders(f"{{x}} {{y}} {{n}} {mark('x')}", {"x": "x"}) == "{{x}} {y} {{n}} {x}"


def test_jobs_are_grouped_within_limits() -> None:
    assert groups([lambda job: job % 2], 4) == {(0,): [0, 2], (1,): [1, 3]}
    with pytest.raises(MacroError, match="1,000"):
        groups([lambda job: job], 1_001)
