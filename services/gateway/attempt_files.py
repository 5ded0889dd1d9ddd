"""Files of attempts through the gateway: a pilot reads the input sandboxes of jobs that it holds, and stores their outputs.

A payload reads those of its own job.

The job manager says whether the pilot holds the job under the epoch that the request names. Its answer is believed for a few seconds,
so that a job with many inputs, or a transfer that goes on after a break, is asked for once.
"""

import time
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import received
from services.gateway.asking import Desk, json_response
from services.gateway.operation import CREATED, Operation
from services.gateway.sandboxes import ARCHIVE, archive, kept, opened
from wms.bounded_cache import BoundedCache
from wms.bounds import Digest, EpochNumber, JobNumber
from wms.client.credential import UserCredential
from wms.client.submission import new_id
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId
from wms.jobdesc.description import SandboxRef
from wms.messages import queries, replies

BELIEVED_SECONDS: Final = 5.0
"""Seconds for which it is believed that a pilot holds a job. What is stored after a lease is lost, no result can refer to."""
REMEMBERED: Final = 10_000


class OneAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attempt of a job."""

    job_id: JobNumber
    epoch: EpochNumber


class OneInput(OneAttempt, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input sandbox of an attempt."""

    sha256: Digest


INPUT: Final = Operation(
    method="GET",
    path="/attempts/{job_id}/{epoch}/inputs/{sha256}",
    summary="An input archive (tar, gzip) of a job, for the pilot that holds the job under this epoch, and for its payload",
    parameters=OneInput,
    for_payloads=True,
    answer=None,
    answer_type=ARCHIVE,
)
OUTPUT: Final = Operation(
    method="PUT",
    path="/attempts/{job_id}/{epoch}/output",
    summary="Keep an archive (tar, gzip) with the output of a job, from the pilot that holds the job under this epoch",
    parameters=OneAttempt,
    body=bytes,
    body_types=(ARCHIVE,),
    answer=SandboxRef,
    status=CREATED,
)


class AttemptFiles:
    """The endpoints of pilots' files."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._believed = BoundedCache[tuple[str, AttemptId], tuple[float, replies.HeldLease]](REMEMBERED)

    async def input(self, request: Request) -> Response:
        """Return an input archive; ranges of it may be asked for. Rejected: the job is not the pilot's, or has no such input."""
        credential = self._desk.admit_holder(request)
        given = received.parameters(request, OneInput)
        opened(self._desk)
        held = await self._held(credential, given)
        if given.sha256 not in held.inputs:
            raise Rejected("NO_SUCH_INPUT", f"job {given.job_id} has no such input sandbox")
        return await archive(self._desk, request, given.sha256, f"{given.sha256}.tar.gz")

    async def output(self, request: Request) -> Response:
        """Keep an archive under the digest of its bytes. Rejected: the job is not the pilot's."""
        credential = self._desk.admit_pilot(request)[0]
        given = received.parameters(request, OneAttempt)
        received.require_type(request, ARCHIVE)
        store = opened(self._desk)
        await self._held(credential, given)
        return json_response(await kept(request, store, self._desk.settings.read_seconds), CREATED)

    async def _held(self, credential: UserCredential, given: OneAttempt) -> replies.HeldLease:
        """Return the job manager's word that the pilot of this token holds the attempt. Rejected: it does not."""
        attempt_id = AttemptId(JobId(given.job_id), Epoch(given.epoch))
        key = (credential.token, attempt_id)
        known = self._believed.get(key)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        found = await self._asked(credential, attempt_id)
        self._believed[key] = (time.monotonic() + BELIEVED_SECONDS, found)
        return found

    async def _asked(self, credential: UserCredential, attempt_id: AttemptId) -> replies.HeldLease:
        channel = self._desk.callers.channel(credential)
        query = queries.ShowLease(
            query_id=new_id(), client=channel.client, job_id=attempt_id.job_id, epoch=attempt_id.epoch
        )
        return await channel.ask(
            queries.TOPIC,
            query.query_id,
            query,
            replies.HeldLease,
            self._desk.settings.answer_seconds,
            in_order=False,
        )
