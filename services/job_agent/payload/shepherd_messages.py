"""The messages between an agent and its shepherd (the process that starts payloads), as structs. On the wire they are JSON."""

from typing import TypeAlias

import msgspec

from services.job_agent.payload import shepherd


class SpawnOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to start a payload: program, arguments, environment, directories, output files and limits."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdout: str
    stderr: str
    stdin: str = ""
    """The path of the file that is its standard input. Empty for none."""
    stdout_capture: int = 10 * 1024 * 1024
    """How many bytes of its standard output are stored: half from the beginning and half from the end."""
    stderr_capture: int = 10 * 1024 * 1024
    scratch: str = ""
    """The directory that an isolated payload has as its `/tmp`. Besides it, it can write only to `cwd` on disk."""
    umask: int = shepherd.UMASK
    rlimits: dict[str, int] = {}
    """Resource limits of the kernel, by their names in Python's module `resource` without `RLIMIT_`."""
    has_image: bool = False
    """Whether the program is one that makes a container of an image by itself, so that it is not started in one of the shepherd's."""
    pid_file: str = ""
    """A file that the program makes with the pid of the first process in its container. Empty: it makes none."""
    tasks: int = 0
    """The most processes and threads of an isolated payload, if the kernel can limit them for it alone. 0: no limit."""
    deadline: float | None = None
    """The time at which the payload is killed, in seconds since boot as `shepherd.now` returns them. None: never.

    It can be changed later. A payload is not started after its deadline.
    """


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the main process of a payload ended, and the resources that it and all its descendants used."""

    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    """Seconds from the start to the end of the main process."""
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0
    """The peak resident memory of the payload's largest single process."""
    expired: bool = False
    """Whether the process was killed at its deadline."""
    stuck: int = 0
    """How many processes of the payload did not end even by SIGKILL."""
    lost: bool = False
    """Whether the payload was killed because the shepherd died."""


class Started(msgspec.Struct, frozen=True, tag_field="is", tag="started"):
    """The shepherd reports that a payload runs. `pid` is its main process, `container` the first of its container (0: none)."""

    id: int
    pid: int
    container: int = 0


class Contained(msgspec.Struct, frozen=True, tag_field="is", tag="contained"):
    """The shepherd reports whether it can isolate payloads in containers: `error` says why not, or is empty."""

    error: str


class FailedToStart(msgspec.Struct, frozen=True, tag_field="is", tag="failed_to_start"):
    """The shepherd reports that a program could not be started. `fault` is `job` or `node`, whichever is at fault."""

    id: int
    error: str
    fault: str


class StrayEnded(msgspec.Struct, frozen=True, tag_field="is", tag="stray"):
    """The shepherd reports the CPU seconds of an ended descendant of a payload that its parent had not waited for."""

    id: int
    user_seconds: float
    system_seconds: float


class Pong(msgspec.Struct, frozen=True, tag_field="is", tag="pong"):
    """The shepherd's answer to a ping, which shows that it does not hang."""

    id: int


class Exited(ProcessEnd, frozen=True, kw_only=True, tag_field="is", tag="exited"):
    """The shepherd reports that a payload and all its descendants have ended."""

    id: int


FromShepherd: TypeAlias = Started | FailedToStart | StrayEnded | Exited | Contained | Pong

_decoder: msgspec.json.Decoder[FromShepherd] = msgspec.json.Decoder(FromShepherd)
_encoder = msgspec.json.Encoder()


def encoded(order: dict[str, object]) -> bytes:
    """Return an order to the shepherd as a line of JSON, with the line's end."""
    return _encoder.encode(order) + b"\n"


def decoded(line: bytes) -> FromShepherd:
    """Return the message in a line of JSON that the shepherd sent."""
    return _decoder.decode(line)
