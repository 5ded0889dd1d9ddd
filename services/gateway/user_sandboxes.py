"""Sandboxes (archives of files) for users: uploads of inputs for submissions, and downloads of outputs of jobs that the user may see."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from services.gateway import conditional_requests, request_parsing
from services.gateway.job_routes import OneJob
from services.gateway.operation import CREATED, NoParameters, Operation
from services.gateway.sandbox_store import ARCHIVE, archive, kept, opened
from services.gateway.service_requests import Desk, json_response
from wms.auth.policy import scope
from wms.client.files import output_of
from wms.client.submission import new_id
from wms.db import sandbox
from wms.errors import Rejected
from wms.jobdesc.description import SandboxRef
from wms.messages import queries, replies

UPLOAD: Final = Operation(
    method="POST",
    path="/sandboxes",
    summary="Keep an archive (tar, gzip) for the `input_sandbox` of a submission",
    body=bytes,
    body_types=(ARCHIVE,),
    answer=SandboxRef,
    status=CREATED,
)
OUTPUT: Final = Operation(
    method="GET",
    path="/jobs/{job_id}/output",
    summary="The output archive (tar, gzip) of a job's last attempt that has one",
    parameters=OneJob,
    answer=None,
    answer_type=ARCHIVE,
    in_ranges=True,
)


class UserSandboxes:
    """The endpoints by which users upload input archives and download output archives."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def upload(self, request: Request) -> Response:
        """Store the archive in the body under its digest, and return the reference to it. Equal archives are stored once.

        From then on, submissions of the same owner, group and VO may refer to it. Raise Rejected if the token may submit no
        jobs, the archive is too large or slow, or the gateway has no store.
        """
        credential, principal = self._desk.admit_as(request)
        if scope(principal, "submit").reach == "nothing":
            raise Rejected("NOT_ALLOWED", f"a {principal.kind}'s token submits no jobs", "use a user's token")
        request_parsing.parameters(request, NoParameters)
        request_parsing.require_type(request, ARCHIVE)
        archive = await kept(request, self._desk, credential.owner)
        assert self._desk.db is not None
        async with self._desk.db.transaction() as tx:
            await sandbox.claim(tx, principal.identity, [archive.sha256])
        return json_response(archive, CREATED)

    async def output(self, request: Request) -> Response:
        """Return a job's output archive, or the byte range that the request asks for; status 304 if the client has it.

        Raise Rejected if the job has no output, the user may not see it, or the gateway has no store.
        """
        settings = self._desk.settings
        credential = self._desk.admit(request)
        given = request_parsing.parameters(request, OneJob)
        opened(self._desk)
        channel = self._desk.services.channel(credential)
        query = queries.ShowJob(query_id=new_id(), client=channel.client, job_id=given.job_id)
        job = await channel.ask(
            queries.TOPIC, query.query_id, query, replies.JobDetail, settings.answer_seconds
        )
        digest = output_of(job)
        if (same := conditional_requests.unchanged(request, f'"{digest}"')) is not None:
            return same
        return await archive(self._desk, request, digest, f"{given.job_id}.tar.gz", credential.owner)
