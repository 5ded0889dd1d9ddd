"""A site's program as it may be: it repeats itself, lies, fails, hangs, floods."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from services.agreement.config import SiteScript
from services.agreement.site_script import ScriptedElement
from tests.services.agreement.site_program import SiteProgram, program
from tests.unit.agreement.offers import NOW, terms
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import AgreementReason, Refusal
from wms.errors import Unavailable


def scripted(path: Path, seconds: float = 60.0) -> ScriptedElement:
    return ScriptedElement(SiteScript(program=str(path), seconds=seconds), ReservationRules(), 4)


def saying(directory: Path, text: str, seconds: float = 60.0) -> ScriptedElement:
    return scripted(program(directory, f"#!{sys.executable}\n{text}\n"), seconds)


async def test_what_was_reserved_is_listed_granted_again_and_released(tmp_path: Path) -> None:
    element = scripted(SiteProgram(tmp_path, 4).path)
    first = await element.decide(terms(), NOW)
    assert isinstance(first, Granted)
    assert await element.decide(terms(), NOW) == first
    (held,) = await element.holdings()
    assert (held.name, held.start_at, held.ends_at) == (first.reservation, first.start_at, first.ends_at)
    assert await element.release([held.name]) == {held.name}
    assert await element.release([held.name]) == {held.name}, "it is gone already"
    assert await element.holdings() == []


async def test_a_start_outside_the_window_is_no_grant(tmp_path: Path) -> None:
    element = saying(tmp_path, """print('{"start_at": "2030-01-01T00:00:00Z"}')""")
    decision = await element.decide(terms(), NOW)
    assert isinstance(decision, Refusal)
    assert decision.code is AgreementReason.REFUSED_BY_SITE
    assert "outside the window" in decision.text


async def test_a_start_that_an_earlier_try_was_given_may_have_passed(tmp_path: Path) -> None:
    element = scripted(SiteProgram(tmp_path, 4).path)
    first = await element.decide(terms(), NOW)
    assert await element.decide(terms(), NOW + timedelta(seconds=30)) == first


async def test_its_reason_is_told(tmp_path: Path) -> None:
    decision = await saying(tmp_path, """print('{"reason": "closed on Sundays"}')""").decide(terms(), NOW)
    assert decision == Refusal(AgreementReason.REFUSED_BY_SITE, "closed on Sundays")


@pytest.mark.parametrize(
    "text",
    [
        "print('no JSON')",
        """print('{"start_at": "9999-99-99"}')""",
        """print('{"start_at": 7}')""",
        "raise SystemExit(3)",
        "while True: print('x' * 1_000_000)",
        "print('[' * 100_000)",
    ],
    ids=["text", "time", "number", "fails", "floods", "deep"],
)
async def test_a_program_that_does_not_answer_decides_nothing(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unavailable):
        await saying(tmp_path, text).decide(terms(), NOW)


async def test_a_program_that_hangs_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        await saying(tmp_path, "import time; time.sleep(600)", seconds=1.0).decide(terms(), NOW)


async def test_a_program_that_is_missing_decides_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        await scripted(tmp_path / "none").holdings()
