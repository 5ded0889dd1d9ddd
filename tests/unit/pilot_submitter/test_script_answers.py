"""Answers of a mapping script: asked for once, tried again, and waited for."""

from pathlib import Path
from typing import Any

import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.host_requests import HostRequests
from services.pilot_submitter.script_answers import RETRY_SECONDS, ScriptAnswers, Version
from services.pilot_submitter.script_questions import WANTED_LIMIT
from tests.unit.provisioning.hosts import asks, element
from wms.dispatch.forwarding import ForwardingRules, HostRequestTerms, forward
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.mapping_script import (
    ANSWERS_TOLD,
    WAITS,
    MappingScript,
)
from wms.dispatch.port import Request
from wms.errors import Unavailable
from wms.ids import CeId
from wms.provisioning.demand import Avoidance
from wms.provisioning.pilot_class import PilotClass
from wms.site import AdvertisedElement


class FakeScript:
    """Stands for a script in its sandbox, whose answers and failures a test sets."""

    name = "/site/map"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.says: bytes | Unavailable = b'{"options": ["--tmp=2"], "asked": ["scratchmb >= 2000"]}'
        self.changed = 0

    def version(self) -> Version:
        return self.changed

    async def run(self, question: str) -> bytes:
        self.asked.append(question)
        if isinstance(self.says, Unavailable):
            raise self.says
        return self.says


class Element:
    """A door to an element with a script, and what pilots ask for there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.script = FakeScript()
        terms = HostRequestTerms(
            kind="slurm", script=MappingScript(attributes=("ScratchMB",), options=("--tmp",))
        )
        nothing = LocalDispatcher(Path("/nowhere"), (), {})
        clock = lambda: self.now  # noqa: E731 - a clock that the test sets
        self.answers = ScriptAnswers(self.script, clock)
        self.door = CeEndpoint(
            CeId("A", "ce"), nothing, clock, EndpointSettings(kind="slurm", asks=terms), self.answers
        )
        self.doors = CeEndpoints(nothing, clock, [self.door])
        self.asking = HostRequests(self.doors, clock)
        assert self.door.mapping is not None
        self.ad: AdvertisedElement = element(told={}, forwards=tuple(sorted(self.door.mapping.forwarded)))

    def hosts(
        self, requirements: str = "other.ScratchMB >= 2000", owner: str = "a"
    ) -> PilotClass | Avoidance | None:
        return self.asking.hosts(asks(requirements, owner=owner), self.ad)

    def avoided(self, requirements: str = "other.ScratchMB >= 2000") -> str:
        found = self.hosts(requirements)
        assert isinstance(found, Avoidance), found
        assert found.code == "BACKOFF"
        return found.why

    def told(self, requirements: str = "other.ScratchMB >= 2000") -> Any:
        """What they are told who explain, by what was written down."""
        return ForwardingRules({CeId("A", "ce"): self.door.asks_as_json()}).forward(
            asks(requirements), self.ad
        )


async def test_an_element_is_avoided_until_its_script_has_answered_and_other_work_goes_there() -> None:
    at = Element()
    assert at.avoided() == WAITS
    assert at.hosts("") is None
    assert isinstance(at.hosts("other.GlueHostMainMemoryRAMSize >= 8000"), PilotClass)
    assert at.told().avoided == WAITS
    assert not await at.doors.ask_scripts()
    found = at.hosts()
    assert isinstance(found, PilotClass)
    assert found.asked == ("scratchmb >= 2000 as --tmp=2 by the site's script",)
    assert found.sure
    assert at.told().hosts == found
    assert not at.told().avoided


async def test_a_question_is_asked_once_and_again_when_the_script_is_another() -> None:
    at = Element()
    for _ in range(3):
        at.hosts()
        await at.doors.ask_scripts()
    assert len(at.script.asked) == 1
    at.script.changed, at.script.says = 1, b'{"options": ["--tmp=7"], "asked": ["scratchmb >= 2000"]}'
    await at.doors.ask_scripts()
    assert at.avoided() == WAITS
    await at.doors.ask_scripts()
    found = at.hosts()
    assert isinstance(found, PilotClass)
    assert "--tmp=7" in str(found)


@pytest.mark.parametrize("says", [Unavailable("has not ended within 5 s"), b"garbage"])
async def test_a_failure_is_told_and_tried_again_after_a_while(says: bytes | Unavailable) -> None:
    at = Element()
    good, at.script.says = at.script.says, says
    at.hosts()
    await at.doors.ask_scripts()
    why = at.avoided()
    assert why.startswith(
        ("its mapping script has not ended within 5 s", "its mapping script prints no answer")
    )
    assert at.told().avoided == why
    assert isinstance(at.hosts("other.GlueHostMainMemoryRAMSize >= 8000"), PilotClass)
    await at.doors.ask_scripts()
    assert len(at.script.asked) == 1
    at.now, at.script.says = RETRY_SECONDS, good
    assert at.avoided() == why, "what is wanted anew is asked in the next round"
    await at.doors.ask_scripts()
    assert isinstance(at.hosts(), PilotClass)


async def test_however_many_questions_wait_few_are_remembered_and_all_are_answered() -> None:
    at = Element()
    many = [f"other.ScratchMB >= {2_000 + number}" for number in range(WANTED_LIMIT + 5)]
    at.script.says = b'{"options": ["--tmp=2"], "asked": []}'
    for each in many:
        at.hosts(each)
    while await at.doors.ask_scripts():
        pass
    assert len(at.script.asked) == WANTED_LIMIT
    assert [at.hosts(each) for each in many].count(Avoidance("BACKOFF", WAITS)) == 5
    while await at.doors.ask_scripts():
        pass
    assert not any(isinstance(at.hosts(each), Avoidance) for each in many)
    assert len(at.answers.latest()) == ANSWERS_TOLD
    assert not at.told(many[0]).avoided, "older answers are not written down, but pilots go there"


async def test_an_owner_with_very_many_questions_delays_anothers_by_one() -> None:
    at = Element()
    at.script.says = b'{"options": ["--tmp=2"], "asked": []}'
    for number in range(WANTED_LIMIT + 5):
        at.hosts(f"other.ScratchMB >= {2_000 + number}")
    theirs = ["other.ScratchMB >= 7", "other.ScratchMB >= 8"]
    for each in theirs:
        at.hosts(each, "b")
    await at.doors.ask_scripts()
    for each in theirs:
        assert isinstance(at.hosts(each, "b"), Avoidance)
        await at.doors.ask_scripts()
        assert isinstance(at.hosts(each, "b"), PilotClass), "it is b's turn"
        await at.doors.ask_scripts()


async def test_a_question_of_two_owners_is_asked_once() -> None:
    at = Element()
    for owner in ("a", "b"):
        at.hosts(owner=owner)
    assert not await at.doors.ask_scripts()
    assert isinstance(at.hosts(owner="b"), PilotClass)
    assert len(at.script.asked) == 1


def test_a_door_whose_script_nobody_asked_says_so() -> None:
    at = Element()
    assert at.door.mapping is not None
    found = forward(asks("other.ScratchMB >= 2000"), at.ad, Request(), at.door.mapping)
    assert found.avoided == WAITS
    assert found.hosts is None
