"""Arguments in one text."""

import pytest

from wms.jobdesc.languages.command_line import arguments, condor_arguments, needs_a_shell


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


def test_a_command_line_that_only_a_shell_can_work_out() -> None:
    assert all(map(needs_a_shell, ("$HOME", '"$A"', "a; b", "a > b", "*.root", "`a`", "a & b")))
    assert not any(map(needs_a_shell, ("a 'b; $c'", "a\\$b", "-n 5 x=y,z", "")))
