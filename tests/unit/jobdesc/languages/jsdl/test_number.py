import pytest

from wms.jobdesc.languages.jsdl.number import is_true, real, whole


def test_numbers_as_the_schema_writes_them() -> None:
    assert (whole(" +7 "), whole("-0"), real(" 1.5e3 ")) == (7, 0, 1500.0)
    assert [is_true(text) for text in ("true", " 1 ", "false", "0", None, "TRUE")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("text", ["", "1.5", "9" * 19, "9" * 100_000, "1_0", "\u0661"])
def test_other_whole_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        whole(text)
