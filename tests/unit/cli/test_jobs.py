"""`wms jobs --format csv`: the columns of the table of results."""

import pytest
from msgspec.structs import replace

from tests.unit.messages.examples import JOB_RESULT, LINE
from wms.cli.jobs import show_results
from wms.errors import Rejected

JOBS = [replace(LINE, result=JOB_RESULT), LINE]


def test_the_columns_that_were_asked_for_are_shown_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    show_results(JOBS, ["exit_code", "job_id", "parameters.alpha"])
    assert capsys.readouterr().out.splitlines() == [
        "exit_code,job_id,parameters.alpha",
        "0,1042,0.5",
        ",1042,",
    ]


def test_all_columns_are_shown_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    show_results(JOBS, [])
    head, *_ = capsys.readouterr().out.splitlines()
    assert {"job_id", "exit_code", "wall_seconds", "parameters.alpha"} < set(head.split(","))


def test_a_column_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(Rejected, match="no column exitcode") as refused:
        show_results(JOBS, ["exitcode"])
    assert "exit_code" in refused.value.remedy


def test_of_no_jobs_the_heading_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    show_results([], ["job_id", "parameters.x"])
    assert capsys.readouterr().out == "job_id,parameters.x\n"
