"""What every kind of element has to do: the same offers get the same starts from a calendar and from a site's program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.agreement.config import SiteScript
from services.agreement.port import DecisionMaker, FreeCpus
from services.agreement.site_script import ScriptedElement
from services.agreement.slot_calendar import CalendarDecisions
from tests.services.agreement.site_program import SiteProgram
from tests.unit.agreement.offers import NOW, at, terms
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import Refusal
from wms.ids import AgreementId

RULES = ReservationRules()
CPUS = 4


async def _cpus() -> int:
    return CPUS


MAKERS: dict[str, Callable[[Path], DecisionMaker]] = {
    "calendar": lambda _: CalendarDecisions(RULES, _cpus),
    "script": lambda path: ScriptedElement(
        SiteScript(program=str(SiteProgram(path, CPUS).path)), RULES, CPUS
    ),
}


@pytest.fixture(params=MAKERS)
async def outlook(request: pytest.FixtureRequest, tmp_path: Path) -> FreeCpus:
    return await MAKERS[request.param](tmp_path).look([])


async def starts(outlook: FreeCpus, *offers: dict[str, Any]) -> list[object]:
    decisions = [
        await outlook.decide(terms(agreement_id=AgreementId(f"a-{n}"), **each), NOW)
        for n, each in enumerate(offers)
    ]
    return [each.start_at if isinstance(each, Granted) else type(each) for each in decisions]


async def test_the_earliest_start_in_the_window_is_granted_or_none(outlook: FreeCpus) -> None:
    assert outlook.cpus == CPUS
    two, three = {"cpus": 2}, {"cpus": 3}
    assert await starts(outlook, two, two, two, {**two, "latest_start": at(599)}, three) == [
        NOW,
        NOW,
        at(600),
        Refusal,
        at(1_200),
    ]


async def test_a_window_in_the_future_begins_there(outlook: FreeCpus) -> None:
    assert await starts(outlook, {"earliest_start": at(1_000), "latest_start": at(1_000)}) == [at(1_000)]


async def test_a_window_that_is_over_is_refused(outlook: FreeCpus) -> None:
    assert await starts(outlook, {"latest_start": at(-1)}) == [Refusal]
