"""Answers of a site's mapping script, which maps job requirements to batch system options; cached until the script changes.

Each question is asked once, and owners of jobs take turns. A sandboxed script sees nothing but its question, so that its answer
stays the same as long as its file does. For jobs whose question has no answer yet, or failed, no pilots are sent.
"""

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Protocol, TypeAlias

import msgspec
import structlog

from services.pilot_submitter.script_questions import Owner, ScriptQuestions
from wms.bounded_cache import BoundedCache
from wms.dispatch.bubblewrap import Bubblewrap
from wms.dispatch.mapping_script import ANSWERS_TOLD, Outcome, ScriptAnswer, ScriptedMapping
from wms.errors import Unavailable
from wms.ids import CeId

log = structlog.get_logger()

ANSWERS_KEPT = 16_384
RETRY_SECONDS = 60.0
"""Seconds after a failure of the script in which the same question is not asked again."""

Version: TypeAlias = Hashable


class Script(Protocol):
    """A site's script, which maps job requirements to batch system options. It is run with one question at a time."""

    @property
    def name(self) -> str: ...  # noqa: D102 - as its name says

    def version(self) -> Version:
        """Return a value that changes whenever the script changes."""

    async def run(self, question: str) -> bytes:
        """Run the script with a question (JSON) and return what it prints. Raise Unavailable if it fails or exceeds a limit."""


class SandboxedScript:
    """The mapping script of one computing element, run in a sandbox."""

    def __init__(self, place: CeId, sandbox: Bubblewrap) -> None:
        self._place = place
        self._sandbox = sandbox
        self.name = str(sandbox.program)

    def version(self) -> Version:
        """Return a value that changes whenever the script, or a file that the script reads, changes; None if one of them is missing."""
        try:
            found = [each.stat() for each in (self._sandbox.program, *self._sandbox.reads)]
        except OSError:
            return None
        return tuple((each.st_dev, each.st_ino, each.st_mtime_ns, each.st_size) for each in found)

    async def run(self, question: str) -> bytes:
        """Run the script with a question (JSON), to which the names of site and element are added. Return what it prints.

        Raise Unavailable if it fails or exceeds a limit.
        """
        site, ce = self._place
        whole = {"site": site, "ce": ce, **msgspec.json.decode(question)}
        return await self._sandbox.run(msgspec.json.encode(whole).decode())


class ScriptAnswers:
    """The cached answers of one element's mapping script, and its waiting questions; `clock` returns monotonic seconds."""

    def __init__(self, script: Script, clock: Callable[[], float]) -> None:
        self._script = script
        self._clock = clock
        self._wanted = ScriptQuestions()
        self._not_before = BoundedCache[str, float](ANSWERS_KEPT)
        """The time at which each failed question may be asked again, in seconds of the clock."""
        self.version: Version = script.version()
        self.answers = BoundedCache[str, Outcome](ANSWERS_KEPT)
        self.revision = 0
        """A number that grows with each new answer or failure."""

    def want(self, question: str, owner: Owner) -> None:
        """Queue a question on behalf of an owner, unless the script has answered it, or failed on it less than `RETRY_SECONDS` ago."""
        is_answered = isinstance(self.answers.get(question), ScriptAnswer)
        is_due = self._clock() >= self._not_before.get(question, 0.0)
        if is_due and not is_answered:
            self._wanted.add(owner, question)

    def latest(self) -> dict[str, Outcome]:
        """Return the latest answers by question, the newest first, at most `ANSWERS_TOLD`. A failure is a text."""
        return dict(islice(reversed(self.answers.items()), ANSWERS_TOLD))

    async def answer_next(self, mapping: ScriptedMapping) -> bool:
        """Run the script for the next waiting question, and cache the answer or failure; return whether more questions wait.

        `mapping` translates what the script prints.
        """
        self._look_for_another_script()
        question = self._wanted.next()
        if question is None:
            return False
        outcome = await self._ask(question, mapping)
        self._wanted.answered(question)
        self._keep(question, outcome)
        return bool(self._wanted)

    async def _ask(self, question: str, mapping: ScriptedMapping) -> Outcome:
        try:
            printed = await self._script.run(question)
        except Unavailable as error:
            return error.message
        return mapping.read(question, printed)

    def _keep(self, question: str, outcome: Outcome) -> None:
        if isinstance(outcome, str):
            log.warning("mapping script failed", script=self._script.name, reason=outcome)
            self._not_before[question] = self._clock() + RETRY_SECONDS
        self.answers[question] = outcome
        self.revision += 1

    def _look_for_another_script(self) -> None:
        version = self._script.version()
        if version != self.version:
            log.info("another mapping script", script=self._script.name)
            self.version = version
            self.answers.clear()
            self._not_before.clear()
            self.revision += 1
