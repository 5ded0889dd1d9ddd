"""Sandboxes (archives of files) for users: uploads of inputs for submissions, and downloads of outputs of jobs that the user may see."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from services.gateway import conditional, received
from services.gateway.asking import Desk, json_response
from services.gateway.job_routes import OneJob
from services.gateway.operation import CREATED, NoParameters, Operation
from wms.auth.policy import scope
from wms.client.files import output_of
from wms.client.submission import new_id
from wms.errors import Rejected
from wms.gateway.direct_download import PREFERENCE, REDIRECTED
from wms.jobdesc.description import SandboxRef
from wms.messages import queries, replies
from wms.transfer import SandboxStore

ARCHIVE: Final = "application/gzip"

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
)


class SandboxTransfers:
    """The endpoints by which users upload input archives and download output archives."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def upload(self, request: Request) -> Response:
        """Store the archive in the body under its digest, and return the reference to it. Equal archives are stored once.

        Raise Rejected if the token may submit no jobs, the archive is too large or slow, or the gateway has no store.
        """
        _, principal = self._desk.admit_as(request)
        if scope(principal, "submit").reach == "nothing":
            raise Rejected("NOT_ALLOWED", f"a {principal.kind}'s token submits no jobs", "use a user's token")
        received.parameters(request, NoParameters)
        received.require_type(request, ARCHIVE)
        return json_response(
            await kept(request, opened(self._desk), self._desk.settings.read_seconds), CREATED
        )

    async def output(self, request: Request) -> Response:
        """Return a job's output archive, or the byte range that the request asks for; status 304 if the client has it.

        Raise Rejected if the job has no output, the user may not see it, or the gateway has no store.
        """
        settings = self._desk.settings
        credential = self._desk.admit(request)
        given = received.parameters(request, OneJob)
        opened(self._desk)
        channel = self._desk.callers.channel(credential)
        query = queries.ShowJob(query_id=new_id(), client=channel.client, job_id=given.job_id)
        job = await channel.ask(
            queries.TOPIC, query.query_id, query, replies.JobDetail, settings.answer_seconds
        )
        digest = output_of(job)
        if (same := conditional.unchanged(request, f'"{digest}"')) is not None:
            return same
        return await archive(self._desk, request, digest, f"{given.job_id}.tar.gz")


def opened(desk: Desk) -> SandboxStore:
    """Return the gateway's sandbox store. Raise Rejected (NO_STORE) if none is configured."""
    if desk.store is None:
        raise Rejected(
            "NO_STORE", "this gateway has no sandbox store", "its operators set url in [sandboxes]"
        )
    return desk.store


async def kept(request: Request, store: SandboxStore, seconds: float) -> SandboxRef:
    """Store the body of a request, and return the reference to it. Raise Rejected if it exceeds the store's size limit, or arrives too slowly.

    `seconds` limits each wait for more of it.
    """
    with tempfile.NamedTemporaryFile(prefix="wms-upload-") as file:
        size = 0
        async for piece in received.pieces(request, seconds):
            size += len(piece)
            if size > store.max_object:
                raise Rejected("SANDBOX_TOO_LARGE", f"the archive is over {store.max_object:,} bytes")
            await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.flush)
        return await store.put(Path(file.name))


async def archive(desk: Desk, request: Request, digest: str, name: str) -> Response:
    """Return a response with the stored object of this digest, or the byte range that the request asks for. `name` is the suggested file name.

    If the request has `Prefer: redirect` and the store signs URLs, return a redirect to a signed URL.
    """
    store = opened(desk)
    if request.headers.get("Prefer") == PREFERENCE:
        url = await store.download_url(digest, desk.signed_url_seconds)
        if url is not None:
            return RedirectResponse(url, REDIRECTED, {"Cache-Control": "no-store"})
    return await _whole(store, digest, name)


async def _whole(store: SandboxStore, digest: str, name: str) -> FileResponse:
    aside = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="wms-output-"))
    try:
        await store.fetch(digest, aside / "output")
    except BaseException:
        await asyncio.to_thread(_remove, aside)
        raise
    return FileResponse(
        aside / "output",
        media_type=ARCHIVE,
        filename=name,
        headers=conditional.headers(f'"{digest}"'),
        background=BackgroundTask(_remove, aside),
    )


def _remove(aside: Path) -> None:
    (aside / "output").unlink(missing_ok=True)
    aside.rmdir()
