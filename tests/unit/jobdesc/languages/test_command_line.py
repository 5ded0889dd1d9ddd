"""Arguments in one text."""

import pytest

from wms.jobdesc.languages.command_line import arguments, condor_arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", []),
        ("a  b", ["a", "b"]),
        ("a 'b c'd \"e f\"", ["a", "b cd", "e f"]),
        (r'a\ b "c\"d"', ["a b", 'c"d']),
        ("''", [""]),
        ("it's", ["it's"]),
    ],
)
def test_blanks_separate_and_quotes_protect(text: str, said: list[str]) -> None:
    assert arguments(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"a \'b c\' ""d"""', ["a", "b c", '"d"']),
        ("\"it''s 'it''s'\"", ["its", "it's"]),
        ('""', []),
        ("a b", None),
        ('"', None),
    ],
)
def test_the_new_syntax_of_htcondor(text: str, said: list[str] | None) -> None:
    assert condor_arguments(text) == said
