import pytest

from tests.unit.jobdesc.languages.jsdl.documents import document, only
from wms.jobdesc.languages.jsdl.definition import read_jsdl


def fields(text: str) -> bytes:
    return document(parts=f"<wms:Extension>{text}</wms:Extension>")


def test_fields_stand_over_what_jsdl_says() -> None:
    found = only(
        fields('<wms:Field name="executable">"/bin/y"</wms:Field><wms:Field name="priority">7</wms:Field>')
    )
    assert (found.executable, found.priority) == ("/bin/y", 7)


def test_a_field_that_does_not_exist_is_impossible() -> None:
    found = read_jsdl(fields('<wms:Field name="prioriti">7</wms:Field>'))
    assert "did you mean" not in found.report.losses[0].element
    assert len(found.report.losses) == 1


@pytest.mark.parametrize("text", ["{", "", "1}, {", "[" * 100_000, '7, "value": 8'])
def test_what_is_no_json_is_a_problem_or_a_loss(text: str) -> None:
    found = read_jsdl(fields(f'<wms:Field name="priority">{text}</wms:Field>'))
    assert found.problems or found.descriptions
