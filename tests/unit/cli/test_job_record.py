"""The tables of `wms show --ranking` and `wms predictions`."""

import msgspec
import pytest

from tests.unit.messages.ranking_examples import FULL, RANKED, REJECTED
from wms.cli.job_record import CALIBRATIONS, ELEMENTS, _show_ranking, calibration_row, element_row, sources
from wms.messages import replies


def test_a_ranked_element_shows_its_whole_its_parts_and_their_sources() -> None:
    row = element_row(RANKED)
    assert len(row) == len(ELEMENTS)
    assert row[:4] == (1, "glasgow", "ce01", "36m40s")
    assert sources(RANKED.parts) == "reservation,benchmark"


def test_a_rejected_element_shows_why() -> None:
    row = element_row(REJECTED)
    assert row[0] == "-"
    assert row[-1] == REJECTED.reasons[0]


def test_a_predictor_without_scores_shows_no_figures() -> None:
    told = FULL["calibrations"]
    assert isinstance(told, replies.Calibrations)
    line = msgspec.structs.replace(told.lines[0], covered=None, ratio=None, error_seconds=None)
    row = calibration_row(line)
    assert len(row) == len(CALIBRATIONS)
    assert row[-3:] == ("-", "-", "-")


def test_the_record_fits_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = FULL["job-ranking"]
    assert isinstance(told, replies.JobRanking)
    _show_ranking(told)
    lines = capsys.readouterr().out.splitlines()
    assert any("glasgow" in line for line in lines)
    assert any("wms-17" in line for line in lines)
