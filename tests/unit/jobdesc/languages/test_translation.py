import pytest

from tests.unit.jobdesc.descriptions import of
from wms.jobdesc.languages.translation import Translation, WrittenDocument
from wms.jobdesc.loss_report import LossEntry, LossReport
from wms.jobdesc.problem import InvalidDescription, Problem

LOSS = LossReport((LossEntry("Rank", "impossible", "no such thing", line=3),))


def test_losses_are_accepted_unless_strict() -> None:
    found = Translation(language="x", descriptions=(of(),), report=LOSS)
    assert found.jobs(strict=False) == [of()]
    with pytest.raises(InvalidDescription) as refusal:
        found.jobs(strict=True)
    assert [(each.place, each.line) for each in refusal.value.problems] == [("Rank", 3)]


def test_strict_tells_problems_and_losses_together() -> None:
    found = Translation(
        language="x", report=LOSS, problems=(Problem(place="Executable", message="is missing"),)
    )
    with pytest.raises(InvalidDescription) as refusal:
        found.jobs(strict=True)
    assert len(refusal.value.problems) == 2


def test_a_document_without_jobs_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="1 problem"):
        Translation(language="x").jobs(strict=False)


def test_a_written_document_is_refused_with_losses_if_strict() -> None:
    document = WrittenDocument(text="&()", report=LOSS)
    assert document.whole(strict=False) == "&()"
    with pytest.raises(InvalidDescription):
        document.whole(strict=True)
