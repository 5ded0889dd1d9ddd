"""Sandboxes through the gateway: input archives of submissions, and outputs of jobs that the user may see in full."""

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
    """The endpoints of sandboxes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def upload(self, request: Request) -> Response:
        """Store the archive in the body under its digest, and return the reference to it. Equal archives are stored once.

        Raise Rejected if the token may submit no jobs, or if the archive is too large.
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
        """Return the output archive of a job, or a range of its bytes. Raise Rejected if the job has none, or may not be seen."""
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
    """Return the gateway's sandbox store. Rejected: it has none."""
    if desk.store is None:
        raise Rejected(
            "NO_STORE", "this gateway has no sandbox store", "its operators set url in [sandboxes]"
        )
    return desk.store


async def kept(request: Request, store: SandboxStore, seconds: float) -> SandboxRef:
    """Store the body of a request, each piece of which must come within `seconds`. Rejected: it is too large or too slow."""
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
    """Return an object of the store as a response, of which ranges may be asked for. `name` is the file name that it proposes.

    If the request prefers that and the store has signed URLs, the response sends the client there.
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
