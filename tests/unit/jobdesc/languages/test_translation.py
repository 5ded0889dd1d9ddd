import pytest

from tests.unit.jobdesc.descriptions import of
from wms.jobdesc.languages.translation import Translation, WrittenDocument
from wms.jobdesc.loss_report import LossEntry, LossReport
from wms.jobdesc.problem import InvalidDescription, Problem

LOSS = LossReport((LossEntry("Rank", "impossible", "no such thing", line=3),))


def test_losses_are_refused_unless_let_go() -> None:
    found = Translation(language="x", descriptions=(of(),), report=LOSS)
    assert found.jobs(lenient=True) == [of()]
    with pytest.raises(InvalidDescription) as refusal:
        found.jobs()
    assert [(each.place, each.line) for each in refusal.value.problems] == [("Rank", 3)]


def test_problems_and_losses_are_told_together() -> None:
    found = Translation(
        language="x", report=LOSS, problems=(Problem(place="Executable", message="is missing"),)
    )
    with pytest.raises(InvalidDescription) as refusal:
        found.jobs()
    assert len(refusal.value.problems) == 2


def test_a_document_without_jobs_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="1 problem"):
        Translation(language="x").jobs(lenient=True)


def test_a_written_document_is_refused_with_losses() -> None:
    document = WrittenDocument(text="&()", report=LOSS)
    assert document.whole(lenient=True) == "&()"
    with pytest.raises(InvalidDescription):
        document.whole()
