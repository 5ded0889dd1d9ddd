"""The match requests of a pilot, by which it asks for jobs. At most one is unanswered; it is sent again until it is answered."""

import random
import uuid
from collections import deque

import msgspec
import structlog

from services.job_agent.leased_jobs import LeasedJobs
from services.job_agent.link import AgentLink
from services.job_agent.offered_job import DecodedOffer, read
from services.job_agent.payload.shepherd import now
from services.job_agent.prefetch import held_seconds, wanted_seconds
from services.job_agent.resource import describe
from wms.errors import Unavailable
from wms.ids import PilotId, RequestId
from wms.matching.node_facts import with_gpus
from wms.messages.match_requests import SLOTS_LIMIT, MatchRequest
from wms.messages.site_inbox import NoMatch, Offer
from wms.runtime.pilot_config import PilotConfig
from wms.site import Told

log = structlog.get_logger()

AGAIN_SECONDS = 5.0
"""Seconds without an answer after which a match request is sent again, with the same id."""
LOOK_SECONDS = 1.0
REMEMBERED = 64
"""The number of latest match requests whose offers are still accepted. Offers for earlier ones are ignored.

A large offer comes in several messages, of which some arrive late.
"""


class _Asked(msgspec.Struct):
    """A match request, the time at which it was last sent (seconds since boot), and whether it was answered."""

    request: MatchRequest
    sent_at: float = 0.0
    answered: bool = False


class MatchRequests:
    """Decides when a pilot asks for jobs and for how much work, and which offered jobs it accepts.

    `node` has the properties of the pilot's node, which requests contain.
    """

    def __init__(self, config: PilotConfig, link: AgentLink, holdings: LeasedJobs, node: Told) -> None:
        self._config = config
        self._link = link
        self._holdings = holdings
        self._ahead_seconds = config.pilot.ahead_seconds
        self._node = node
        self._last: _Asked | None = None
        self._asked: deque[RequestId] = deque(maxlen=REMEMBERED)
        self._not_before = {True: 0.0, False: 0.0}
        """When to ask again, in seconds since boot, for free slots (True) and for work ahead (False)."""
        self.refused_last = False
        """Whether the last answer to a request for free slots offered no job. A pilot counts as idle only while this is true."""
        self._began_at = now()

    @property
    def ahead_seconds(self) -> float:
        """How many slot seconds of work the slots of running jobs can take soon. 0 if all these jobs are long."""
        return wanted_seconds(self._ahead_seconds, self._holdings.running_times(now()))

    @property
    def seconds_left(self) -> float:
        """How many seconds are left of the pilot's lifetime. Negative once it is over."""
        return self._config.pilot.lifetime_seconds - (now() - self._began_at)

    @property
    def waiting(self) -> bool:
        """Whether a match request was sent within the last AGAIN_SECONDS and has no answer yet."""
        return self._open is not None and now() - self._open.sent_at < AGAIN_SECONDS

    @property
    def _open(self) -> _Asked | None:
        return None if self._last is None or self._last.answered else self._last

    async def ask(self) -> float:
        """Send a new match request if the pilot has room for jobs, or the unanswered one again if AGAIN_SECONDS have passed.

        Return the seconds after which the next call is useful. A request that cannot be sent is tried again later.
        """
        if self._open is not None:
            if not self.waiting:
                self._open.request = msgspec.structs.replace(self._open.request, again=True)
                await self._send(self._open)
            return LOOK_SECONDS
        free = max(0, self._config.pilot.slots - self._holdings.processors)
        seconds = self._wanted_seconds(free)
        if not (free or seconds) or not self._link.is_open:
            return LOOK_SECONDS
        if now() < self._not_before[free > 0]:
            return self._not_before[free > 0] - now()
        self._last = _Asked(self._request(free, seconds))
        self._asked.append(self._last.request.request_id)
        await self._send(self._last)
        return LOOK_SECONDS

    def ask_again(self) -> None:
        """Make the unanswered request due at once, because the connection broke and its answer may be lost. `ask` sends it."""
        if self._open is not None:
            self._open.sent_at = 0.0

    def expects(self, offer: Offer) -> bool:
        """Return whether the offer answers one of this pilot's latest match requests."""
        return offer.request_id in self._asked

    def sort(self, offer: Offer) -> tuple[list[DecodedOffer], list[DecodedOffer]]:
        """Return the jobs of an offer as two lists: those to accept, and those to decline because the pilot has no room.

        Jobs that the pilot has accepted before are in neither list. If the offer is for the unanswered request, that counts
        as answered.
        """
        self.refused_last = False
        self._not_before = {True: 0.0, False: 0.0}  # where jobs have come, more may have
        if self._open is not None and offer.request_id == self._open.request.request_id:
            self._open.answered = True
        slots = self._config.pilot.slots
        room = slots - self._holdings.processors
        gpus = self._holdings.unclaimed_gpus
        taken: list[DecodedOffer] = []
        left: list[DecodedOffer] = []
        for job in offer.jobs:
            if not self._holdings.knows(job.attempt_id):
                offered = read(job)
                fits = room > 0 and offered.gpus <= gpus
                (taken if fits or self._is_short(offered) else left).append(offered)
                room -= offered.slots(slots)
                gpus -= offered.gpus if fits else 0
        return taken, left

    def refused(self, answer: NoMatch) -> None:
        """Process the answer that no job fits. The next request follows after half to all of the answer's `retry_after_seconds`."""
        asked = self._open
        if asked is None or answer.request_id != asked.request.request_id:
            return
        asked.answered = True
        for_slots = asked.request.packed
        self.refused_last = self.refused_last or for_slots
        pause = answer.retry_after_seconds * random.SystemRandom().uniform(0.5, 1.0)
        self._not_before[for_slots] = now() + pause
        log.debug("no match", code=answer.code, reason=answer.reason)

    def _wanted_seconds(self, free: int) -> float:
        """Return how many slot seconds of work to request beyond the jobs that start at once in the `free` slots.

        It is 0 if half of what is wanted waits here, so that many short jobs do not mean many small requests.
        """
        whole = free * self._ahead_seconds + self.ahead_seconds
        wanted = whole - held_seconds(self._ahead_seconds, self._holdings.line_times)
        return wanted if wanted > max(whole, self._ahead_seconds) / 2 else 0.0

    def _is_short(self, offered: DecodedOffer) -> bool:
        likely = offered.job.likely_seconds
        return likely is not None and likely <= self._ahead_seconds

    def _request(self, free: int, seconds: float) -> MatchRequest:
        return MatchRequest(
            request_id=RequestId(uuid.uuid4().hex),
            pilot_id=PilotId(self._config.pilot.pilot_id),
            # Jobs fetched ahead run in turn: each by itself must fit the pilot as a whole.
            resource=describe(
                self._config,
                free=free or self._config.pilot.slots,
                memory_taken_mb=self._holdings.memory_mb if free else 0,
                disk_taken_mb=self._holdings.disk_mb,
                seconds_left=self.seconds_left,
                node=with_gpus(self._node, lambda all_: self._holdings.unclaimed_gpus if free else all_),
            ),
            slots=min(free, SLOTS_LIMIT) or 1,
            packed=free > 0,
            seconds=seconds,
        )

    async def _send(self, asked: _Asked) -> None:
        asked.sent_at = now()
        log.debug(
            "request sent",
            request=asked.request.request_id,
            slots=asked.request.slots,
            seconds=asked.request.seconds,
        )
        try:
            await self._link.ask(asked.request)
        except Unavailable as error:
            log.warning("request not sent, will be again", error=str(error))
