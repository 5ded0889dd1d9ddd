"""Sandboxes of attempts: a pilot downloads the inputs of jobs that it holds, and uploads their outputs.

A payload downloads the inputs of its own job. The job manager confirms that the pilot holds the job's lease under the epoch in the request.
The gateway caches each confirmation for some seconds, so that several files of one job need one query.
"""

import time
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing
from services.gateway.operation import CREATED, Operation
from services.gateway.sandbox_store import ARCHIVE, archive, kept, opened
from services.gateway.service_requests import Desk, json_response
from wms.bounded_cache import BoundedCache
from wms.bounds import Digest, EpochNumber, JobNumber
from wms.client.credential import UserCredential
from wms.client.submission import new_id
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId
from wms.jobdesc.description import SandboxRef
from wms.messages import queries, replies

BELIEVED_SECONDS: Final = 5.0
"""How long the job manager's confirmation of a lease is cached, in seconds.

An output that is uploaded after the lease was lost does no harm, as no accepted report refers to it.
"""
REMEMBERED: Final = 10_000


class OneAttempt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters in the path: a job's id, and the epoch of its attempt."""

    job_id: JobNumber
    epoch: EpochNumber


class OneInput(OneAttempt, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters in the path: a job's id, the epoch of its attempt, and the SHA-256 digest of an input sandbox."""

    sha256: Digest


INPUT: Final = Operation(
    method="GET",
    path="/attempts/{job_id}/{epoch}/inputs/{sha256}",
    summary="An input archive (tar, gzip) of a job, for the pilot that holds the job under this epoch, and for its payload",
    parameters=OneInput,
    for_payloads=True,
    answer=None,
    answer_type=ARCHIVE,
    in_ranges=True,
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


class AttemptSandboxes:
    """The endpoints by which pilots and payloads download inputs, and pilots upload outputs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._believed = BoundedCache[tuple[str, AttemptId], tuple[float, replies.HeldLease]](REMEMBERED)

    async def input(self, request: Request) -> Response:
        """Return an input archive, or the byte range that the request asks for.

        Raise Rejected if the pilot does not hold the attempt, the job has no such input, or the gateway has no store.
        """
        credential = self._desk.admit_holder(request)
        given = request_parsing.parameters(request, OneInput)
        opened(self._desk)
        held = await self._held(credential, given)
        if given.sha256 not in held.inputs:
            raise Rejected("NO_SUCH_INPUT", f"job {given.job_id} has no such input sandbox")
        return await archive(self._desk, request, given.sha256, f"{given.sha256}.tar.gz", credential.token)

    async def output(self, request: Request) -> Response:
        """Store the archive in the body under its digest, and return the reference to it.

        Raise Rejected if the pilot does not hold the attempt, the archive is too large or too slow, or there is no store.
        """
        credential = self._desk.admit_pilot(request)[0]
        given = request_parsing.parameters(request, OneAttempt)
        request_parsing.require_type(request, ARCHIVE)
        opened(self._desk)
        await self._held(credential, given)
        return json_response(await kept(request, self._desk, credential.token), CREATED)

    async def _held(self, credential: UserCredential, given: OneAttempt) -> replies.HeldLease:
        """Return the lease that the token's holder has on the attempt, from the cache or the job manager.

        Raise Rejected if it has none, and Unavailable if the job manager does not answer in time.
        """
        attempt_id = AttemptId(JobId(given.job_id), Epoch(given.epoch))
        key = (credential.token, attempt_id)
        known = self._believed.get(key)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        found = await self._asked(credential, attempt_id)
        self._believed[key] = (time.monotonic() + BELIEVED_SECONDS, found)
        return found

    async def _asked(self, credential: UserCredential, attempt_id: AttemptId) -> replies.HeldLease:
        channel = self._desk.services.channel(credential)
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
