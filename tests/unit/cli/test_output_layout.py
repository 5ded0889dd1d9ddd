"""Where fetched files go: paths made by a pattern, never out of the directory and never two files in one place."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.messages.examples import FULL
from wms.cli.output_layout import target_of
from wms.errors import Rejected
from wms.messages.replies import JobDetail

DETAIL = FULL["job-detail"]
assert isinstance(DETAIL, JobDetail)
JOB = replace(
    DETAIL,
    job=replace(DETAIL.job, job_id=17, name="fit a/b", job_group="fits"),
    array_index=3,
    parameters={"sample": "x1", "way": "../up"},
)
TO = Path("results")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("{name}/{file}", "results/fit a_b/out/h.txt"),
        ("{group}/{id}-{n}/{file}", "results/fits/17-3/out/h.txt"),
        ("{sample}.{file}", "results/x1.out/h.txt"),
        ("{way}/{file}", "results/.._up/out/h.txt"),
        ("a/./b/{file}", "results/a/b/out/h.txt"),
    ],
)
def test_a_pattern_says_where_files_go(pattern: str, path: str) -> None:
    assert target_of(TO, pattern, JOB, "out/h.txt") == Path(path)


def test_flat_files_have_no_directories() -> None:
    assert target_of(TO, "{id}-{file}", JOB, "out/h.txt", flat=True) == Path("results/17-out_h.txt")


@pytest.mark.parametrize("pattern", ["../{file}", "/{file}", "{n}/../../{file}", "{size}/{file}"])
def test_a_pattern_that_leads_out_or_names_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(Rejected, match="--pattern"):
        target_of(TO, pattern, JOB, "out/h.txt")


def test_names_cannot_lead_out() -> None:
    for name in ("..", ".", "", "/"):
        job = replace(JOB, job=replace(JOB.job, name=name))
        assert target_of(TO, "{name}/{file}", job, "h.txt") == Path("results/_/h.txt")
