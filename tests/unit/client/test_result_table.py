"""The table of results: a row for each job, whatever is known of it."""

from msgspec.structs import replace

from tests.unit.messages.examples import JOB_RESULT, LINE
from wms.client.result_table import result_row


def test_a_row_has_the_job_its_parameters_and_how_it_went() -> None:
    row = result_row(replace(LINE, result=JOB_RESULT))
    assert (row["job_id"], row["state"], row["exit_code"], row["attempt"]) == (1042, "Running", 0, 2)
    assert (row["cpu_seconds"], row["max_rss_bytes"], row["parameters.alpha"]) == (1.5, 1_000, "0.5")


def test_a_job_of_which_nothing_is_known_has_the_same_columns() -> None:
    with_result, without = result_row(replace(LINE, result=JOB_RESULT)), result_row(LINE)
    assert with_result.keys() - without.keys() == {"parameters.alpha"}
    assert without["exit_code"] is None
