"""`wms logs`: the history of a job with reasons, and its output; with -f, both are followed until the job ends."""

import contextlib
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Bytes, CommonOptions, Flag, WithinBounds
from wms.cli.printing import note, show, show_json, show_output, show_table
from wms.cli.quantities import amount, span, stamp
from wms.cli.session import OK, SOME_FAILED, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import Attempt, HistoryLine, JobDetail, JobOutput

LOOK_SECONDS = 0.5
MOST = 65_536
"""How many bytes of a job's output one answer of the system may have."""
KEPT_ELSEWHERE = "; `wms output` fetches what the job kept"
ATTEMPTS = (
    TableColumn("ATTEMPT>", ALWAYS),
    TableColumn("SITE", 1, "cut", 8),
    TableColumn("CE", 4, "cut", 8),
    TableColumn("OUTCOME", 1),
    TableColumn("EXIT", 1),
    TableColumn("CPU>", 3),
    TableColumn("WALL>", 2),
    TableColumn("MEMORY>", 2),
    TableColumn("OUTPUT>", 5),
)
USER = "user "
"""The beginning of the source of a change that a user ordered."""
UNNAMED = ("", "QUEUED", "ACCEPTED", "STARTED", "OFFERED")


def logs(
    job: Annotated[int, Parameter(help="The job's id")],
    /,
    *,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative=())] = False,
    stderr: Flag = False,
    output_only: Flag = False,
    raw: Flag = False,
    tail: Annotated[
        Bytes, Parameter(show_default=lambda _: "16K", validator=WithinBounds(1, MOST, "1 to 64K"))
    ] = 16_384,
    common: CommonOptions = USUAL,
) -> int:
    """Show the history of a job, and its output.

    It shows the history with the reason for each change of state, the attempts, and the end of the standard output. With -f it goes on with each new state and each new line until the job has ended; the exit code is 1 unless the job is Done.

    For example:
      wms logs 17
      wms logs 17 -f
      wms logs 17 --stderr --output-only

    Parameters
    ----------
    follow
        Go on until the job ends.
    stderr
        Show standard error instead of standard output.
    output_only
        Show only the output.
    raw
        Show the output as it was printed, with colours and all that may change a terminal.
    tail
        The size of the end that is shown, such as 4K; at most 64K. It begins with a whole line, or says that it does not. Of an ended job the last 4 kB are stored.
    """
    stream: Literal["stdout", "stderr"] = "stderr" if stderr else "stdout"

    async def work(client: "Client") -> int:
        if common.json and not follow:
            return await _show_json(client, job, stream, tail, raw=raw)
        detail = await client.show(job)
        view = _View(client, job, stream, quiet=output_only, raw=raw, as_json=common.json)
        if follow:
            return await _followed(view, detail, tail, job)
        view.history(detail)
        if not output_only:
            _show_attempts(detail)
        await view.tail(tail)
        return OK

    return with_client(common, work)


async def _followed(view: "_View", detail: "JobDetail", size: int, job: int) -> int:
    import asyncio

    try:
        return await view.follow(detail, size)
    except asyncio.CancelledError:
        note(f"wms: the job goes on: `wms logs -f {job}` follows it again, `wms kill {job}` ends it")
        raise


async def _show_json(
    client: "Client", job: int, stream: Literal["stdout", "stderr"], size: int, *, raw: bool
) -> int:
    import msgspec

    detail = await client.show(job)
    printed = await client.peek(job, stream, limit=size, raw=raw, whole=True)
    show_json({**msgspec.to_builtins(detail), "output": printed})
    return OK


class _View:
    """What `wms logs` has printed of one job, so that each state change and each piece of output is printed once."""

    def __init__(
        self,
        client: "Client",
        job: int,
        stream: Literal["stdout", "stderr"],
        *,
        quiet: bool,
        raw: bool,
        as_json: bool,
    ) -> None:
        self._client = client
        self._job = job
        self._stream = stream
        self._quiet = quiet
        self._raw = raw
        self._as_json = as_json
        self._seq = 0
        self._epoch = 0
        self._offset: int | None = None
        """The position after the printed output, in bytes; None: none of this attempt was printed."""
        self._is_within_line = False
        self._waits = ""

    def history(self, detail: "JobDetail") -> None:
        """Print the state changes in `detail` that have not been printed yet."""
        for line in detail.history:
            if line.seq > self._seq:
                self._seq = line.seq
                self._move(line, detail.job.owner)
        waits = f"waits, {detail.job.reason}: {detail.reason_text}" if detail.reason_text else ""
        if waits != self._waits:
            self._waits = waits
            if waits and not self._quiet and not self._as_json:
                note(waits)

    async def tail(self, size: int) -> None:
        """Print the last `size` bytes of the job's output."""
        printed = await self._piece(size)
        if printed.text and not printed.offset and not self._quiet:
            note(f"--- {self._stream}")
        self._take(printed)
        if self._is_within_line:
            show()

    async def follow(self, detail: "JobDetail", size: int) -> int:
        """Print new state changes and new output until the job has ended, and return the exit code: 0 if it is Done.

        `size` is how many bytes of the output so far are printed first.
        """
        import asyncio

        from wms.job.state import ENDED

        while True:
            self.history(detail)
            if detail.job.state in ENDED:
                await self._last_words(detail, size)
                return OK if detail.job.state == "Done" else SOME_FAILED
            if detail.job.state == "Running":
                await self._more(detail, size)
            await asyncio.sleep(LOOK_SECONDS)
            detail = await self._client.show(self._job)

    async def _more(self, detail: "JobDetail", size: int) -> None:
        """Print what a running job has printed since the last look, piece by piece."""
        from wms.errors import Unavailable

        self._begin(detail)
        with contextlib.suppress(Unavailable):  # the pilot may just have ended; the next look tells
            while (printed := await self._piece(size)).live:
                self._take(printed)
                if not printed.text or printed.end is None or printed.end >= printed.size:
                    return

    async def _last_words(self, detail: "JobDetail", size: int) -> None:
        """Print the output that came between the last look and the job's end. Of an ended job, only the last bytes are stored."""
        self._begin(detail)
        self._take(await self._piece(size))
        if self._is_within_line:
            show()

    def _begin(self, detail: "JobDetail") -> None:
        """Begin anew with the output of another attempt."""
        epoch = detail.attempts[-1].epoch if detail.attempts else 0
        if epoch != self._epoch:
            self._epoch, self._offset = epoch, None

    async def _piece(self, size: int) -> "JobOutput":
        """Return what follows the printed output; its last `size` bytes if none was printed yet."""
        limit = size if self._offset is None else MOST
        return await self._client.peek(
            self._job, self._stream, offset=self._offset, limit=limit, raw=self._raw, whole=True
        )

    def _take(self, printed: "JobOutput") -> None:
        """Print a piece of the output, after what was printed before, and say what is left out in between."""
        text = printed.text
        if self._offset is None:
            text = self._from_a_line(printed)
        elif not printed.whole:
            note("--- the stored end of the output; it is not known what was shown of it before")
        elif printed.offset > self._offset:
            note(f"--- {printed.offset - self._offset:,} bytes are left out here{KEPT_ELSEWHERE}")
        self._offset = printed.offset + len(printed.text.encode()) if printed.end is None else printed.end
        self._print(text)

    def _from_a_line(self, printed: "JobOutput") -> str:
        """Return the output from the beginning of a line, and say what is left out before it; or say that it begins within a line."""
        if not printed.offset:
            return printed.text
        begin = printed.text.find("\n") + 1
        is_within = not 0 < begin < len(printed.text)
        text = printed.text if is_within else printed.text[begin:]
        if is_within or not self._quiet:
            elsewhere = "" if printed.live else KEPT_ELSEWHERE
            within = ", from within a line" if is_within else ""
            sizes = f"the last {len(text.encode()):,} of {printed.size:,} bytes"
            note(f"--- {self._stream}, {sizes}{within}{elsewhere}")
        return text

    def _print(self, text: str) -> None:
        if text and self._as_json:
            show_json({"job_id": self._job, "stream": self._stream, "text": text})
        elif text:
            show_output(text, raw=self._raw)
            self._is_within_line = not text.endswith("\n")

    def _move(self, line: "HistoryLine", owner: str) -> None:
        if self._as_json:
            show_json(line)
        elif not self._quiet:
            if self._is_within_line:
                show()
                self._is_within_line = False
            show(in_words(line, owner))


def in_words(line: "HistoryLine", owner: str) -> str:
    """Return a state change of this owner's job as text: its time, state, attempt and reason, and another user who ordered it."""
    reason = "" if line.reason in UNNAMED else line.reason
    text = f"{reason}: {line.text}" if reason and line.text else reason or line.text
    if line.source.startswith(USER) and line.source != USER + owner:
        text += f" (by {line.source})"
    attempt = f"  attempt {line.epoch}" if line.epoch else ""
    return f"{stamp(line.at)}  {line.state:<11}{attempt:<11} {text}".rstrip()


def _show_attempts(detail: "JobDetail") -> None:
    if detail.attempts:
        show()
        rows = [_attempt(each) for each in detail.attempts]
        show_table(ATTEMPTS, rows)


def _attempt(each: "Attempt") -> tuple[object, ...]:
    ended = f"signal {each.signal}" if each.signal else "-" if each.exit_code is None else each.exit_code
    return (
        each.epoch,
        each.site,
        each.ce,
        each.outcome or "under way",
        ended,
        "-" if each.cpu_seconds is None else span(each.cpu_seconds),
        "-" if each.wall_seconds is None else span(each.wall_seconds),
        amount(each.max_rss_bytes),
        amount(each.output_bytes) if each.output_sha256 else "-",
    )
