"""What a terminal sends, told apart into keys."""

from wms.cli.keyboard import split


def test_what_a_terminal_sends_is_told_apart_into_keys() -> None:
    assert split("j\x1b[B\x1bOA\t\x1b[6~q") == ["j", "\x1b[B", "\x1b[A", "\t", "\x1b[6~", "q"]
    assert split("\x1b") == ["\x1b"]
