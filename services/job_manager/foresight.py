"""What is in the way of jobs already at their submission: judged once for each distinct requirements, until ads change."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from wms.db import wait_reason
from wms.db.database import Transaction
from wms.job.reasons import Wait
from wms.jobdesc.array import jobs_in
from wms.jobdesc.description import JobDescription
from wms.messages.replies import Foreseen
from wms.provisioning.demand import reach
from wms.taskqueue.grouping import Requirements
from wms.why.relaxation import openings, told
from wms.why.survey import Known, fixed
from wms.why.tier import contradiction, judge, standing
from wms.why.verdict import Place, verdicts

FRESH_SECONDS = 1.0
REMEMBERED = 100_000
TOLD = 10
"""So many distinct obstacles of one submission are told."""


class Foresight:
    """Looks at what could ever run jobs, and at what could now; `clock` tells monotonic seconds."""

    def __init__(self, segments: tuple[int, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._segments = segments
        self._clock = clock
        self._looked_at = float("-inf")
        self._places: list[Place] = []
        self._known: list[Known] = []
        self._judged: dict[Requirements, Foreseen | None] = {}

    async def look(self, tx: Transaction) -> None:
        """See which computing elements there are, unless it was done just now."""
        if self._clock() - self._looked_at < FRESH_SECONDS:
            return
        self._looked_at = self._clock()
        known = [Known(fixed(each.element), each.fresh) for each in await wait_reason.known(tx)]
        if known != self._known:
            self._known = known
            self._places = [Place(element=each.element, fresh=each.fresh) for each in known]
            self._judged.clear()

    def foresee(
        self, descriptions: Sequence[JobDescription], required: Sequence[Requirements]
    ) -> tuple[Foreseen, ...]:
        """Return what keeps jobs from running anywhere now or ever, of each distinct requirements that have such."""
        hopeless = {wanted: found for wanted in dict.fromkeys(required) if (found := self._judge(wanted))}
        if not hopeless:
            return ()
        jobs = Counter[Requirements]()
        for description, wanted in zip(descriptions, required, strict=True):
            if wanted in hopeless:
                jobs[wanted] += jobs_in(description)
        return tuple(_counted(each, jobs[wanted]) for wanted, each in list(hopeless.items())[:TOLD])

    def _judge(self, wanted: Requirements) -> Foreseen | None:
        if wanted not in self._judged:
            if len(self._judged) >= REMEMBERED:
                self._judged.clear()
            self._judged[wanted] = None if self._runs_somewhere(wanted) else self._obstacle(wanted)
        return self._judged[wanted]

    def _runs_somewhere(self, wanted: Requirements) -> bool:
        return not contradiction(wanted) and any(
            place.fresh and reach(wanted, place.element) is None for place in self._places
        )

    def _obstacle(self, wanted: Requirements) -> Foreseen:
        said = verdicts(wanted, self._places)
        code, text = judge(standing(wanted, said))
        relaxations = tuple(told(wanted, each) for each in openings(wanted, said, self._segments))
        return Foreseen(code=code, text=text, jobs=0, relaxations=relaxations)


def _counted(foreseen: Foreseen, jobs: int) -> Foreseen:
    return Foreseen(code=foreseen.code, text=foreseen.text, jobs=jobs, relaxations=foreseen.relaxations)


def in_words(foreseen: Iterable[Foreseen]) -> tuple[str, ...]:
    """Return each as a line: what keeps how many jobs, and what would do."""
    return tuple(map(_in_words, foreseen))


def _in_words(each: Foreseen) -> str:
    jobs = "1 job" if each.jobs == 1 else f"{each.jobs:,} jobs"
    when = "can never run as it is" if each.code == Wait.NEVER_POSSIBLE else "cannot run now"
    best = f"; {each.relaxations[0].text()} would do" if each.relaxations else ""
    return f"{each.code}: {jobs} {when if each.jobs == 1 else when.replace('as it is', 'as they are')}: {each.text}{best}"
