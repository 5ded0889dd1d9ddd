"""The words of other systems: each is answered by commands that there are."""

import re

import pytest

from wms.cli.__main__ import run
from wms.cli.app import COMMANDS
from wms.cli.other_systems import PLAIN, SYSTEMS, same_here

OURS = {name for _, name, _, _ in COMMANDS}


def test_every_word_leads_to_a_command_that_there_is() -> None:
    words = {**PLAIN, **{name: ours for table in SYSTEMS.values() for name, ours in table.items()}}
    assert not OURS & words.keys()
    for ours in words.values():
        named = re.findall(r"`wms ([a-z-]+)", ours)
        assert named, ours
        assert OURS.issuperset(named)


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["squeue", "-u", "me"], 'no command "squeue"', "`wms jobs --state live`"),
        (["cancel", "5"], 'no command "cancel"', "`wms kill ID`"),
        (["--data", "/x", "jobs"], "--data stands before the command", "options stand after it"),
        (["frobnicate"], 'Unknown command "frobnicate"', "see wms --help"),
    ],
)
def test_an_unknown_command_is_answered_by_ours(
    words: list[str], said: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    told = capsys.readouterr().err
    assert said in told
    assert remedy in told


def test_an_unknown_word_has_no_advice() -> None:
    assert same_here("frobnicate") == ""
    assert same_here("SQUEUE") == same_here("squeue")
