"""The parsing processes of a service. Owners take turns; a process that takes too long is killed and replaced.

The death of a process is an answer to the sender of its document, and harms no other request.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from wms.errors import Rejected, Unavailable
from wms.parsing.owner_turns import OwnerTurns
from wms.parsing.task import LENGTH, Parsed, ParserRefusal, ParserTask, frame

MEMORY_BYTES: Final = 512 * 1024 * 1024
"""The memory that a task may take."""
LEAST_SECONDS: Final = 1.0
SECONDS_PER_BYTE: Final = 5e-6
"""The processor time that a task may take, for each byte of its arguments, beside `LEAST_SECONDS`."""
PATIENCE_SECONDS: Final = 120.0
"""How long a task may last beyond twenty times its processor time, on a machine however busy, with the start of its process."""

DYING_SECONDS: Final = 5.0
"""How long a process that closed its output may take to end."""

LARGE_BYTES: Final = 4 * 1024 * 1024
"""Beyond this size of its arguments a process ends after the task, since Python seldom gives memory back."""

Function: TypeAlias = Callable[..., list[bytes]]

_decoder = msgspec.msgpack.Decoder(Parsed | ParserRefusal)


class NeedsProcess(Exception):  # noqa: N818 - no fault: it says where to go on
    """A document is not small: it is to be parsed in a process that can be killed."""


class ParserPool:
    """Parsing processes, each started when it is first needed. An owner has one at most."""

    name = "parsing"

    def __init__(self, *modules: str, processes: int = 0, memory_bytes: int = MEMORY_BYTES) -> None:
        """Start without processes. They import `modules` first. `processes` is the most of them; 0: one a processor, 2 to 8."""
        self._modules = modules
        self._memory_bytes = memory_bytes
        self._turns = OwnerTurns(processes or min(8, max(2, os.cpu_count() or 1)))
        self._idle: list[_Parser] = []
        self._all: set[_Parser] = set()
        self._is_ending = False
        self.killed = 0
        """The number of processes that were killed, or died, with a document in hand."""

    async def run(self) -> None:
        """Wait until cancelled, and then end all processes."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._is_ending = True
            for each in list(self._all):
                await self._end(each)

    async def parse(self, owner: str, function: Function, *arguments: bytes) -> list[bytes]:
        """Return the result of a function of a module, called with the arguments in a parsing process.

        Raise Rejected if the function does, or if it takes too much time or memory. Raise Unavailable if no process can be started, or
        the service ends.
        """
        size = sum(map(len, arguments))
        seconds = LEAST_SECONDS + SECONDS_PER_BYTE * size
        task = ParserTask(f"{function.__module__}:{function.__name__}", list(arguments), seconds)
        async with self._turns.turn(owner):
            parser = await self._parser()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS + 20 * seconds):
                    answer = await parser.ask(task)
            except (EOFError, OSError, TimeoutError) as error:
                if self._is_ending:
                    raise Unavailable("the service ends") from None
                self.killed += 1
                is_dying = not isinstance(error, TimeoutError)
                raise _refusal(await self._end(parser, is_dying=is_dying), seconds) from None
            except BaseException:
                await self._end(parser)
                raise
            if size > LARGE_BYTES:
                await self._end(parser)
            else:
                self._idle.append(parser)
        if isinstance(answer, ParserRefusal):
            raise Rejected(answer.code, answer.message, answer.remedy, answer.details)
        return answer.pieces

    async def _parser(self) -> "_Parser":
        while self._idle:
            parser = self._idle.pop()
            if parser.is_alive:
                return parser
            await self._end(parser)
        parser = await _Parser.start(str(self._memory_bytes), *self._modules)
        self._all.add(parser)
        return parser

    async def _end(self, parser: "_Parser", *, is_dying: bool = False) -> int:
        """End a process and return its status: the exit code, or the negative number of the signal that ended it."""
        self._all.discard(parser)
        return await parser.end(is_dying=is_dying)


class _Parser:
    """One parsing process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *arguments: str) -> "_Parser":
        """Start a process. Raise Unavailable if there is no room for one."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "wms.parsing.worker", *arguments, stdin=pipe, stdout=pipe, limit=2**20
            )
        except OSError as error:
            raise Unavailable(f"no process can be started to read the document: {error}") from None
        return cls(process)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, task: ParserTask) -> Parsed | ParserRefusal:
        """Return the answer to a task. Raise EOFError or OSError if the process ends before."""
        tasks, answers = self._process.stdin, self._process.stdout
        assert tasks is not None
        assert answers is not None
        tasks.write(frame(task))
        await tasks.drain()
        (length,) = LENGTH.unpack(await answers.readexactly(LENGTH.size))
        answer: Parsed | ParserRefusal = _decoder.decode(await answers.readexactly(length))
        return answer

    async def end(self, *, is_dying: bool) -> int:
        """Kill the process and return its status. One that `is_dying` has a moment to end by itself.

        asyncio forgets the status of a process that has just ended when it is asked to kill it.
        """
        if is_dying:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DYING_SECONDS):
                    return await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        return await self._process.wait()


def _refusal(status: int, seconds: float) -> Rejected:
    if status in {-signal.SIGXCPU, -signal.SIGKILL}:
        said = f"to read the document takes over {seconds:.1f} s of processor time"
    else:
        said = f"the process that read the document ended with status {status}"
    return Rejected("TOO_EXPENSIVE", said, "send it in smaller parts, or make it simpler")
