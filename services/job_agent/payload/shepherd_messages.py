"""What the agent and its shepherd tell each other, as structs; the shepherd itself, which has no dependencies, writes JSON."""

from typing import TypeAlias

import msgspec

from services.job_agent.payload import shepherd


class SpawnOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A process to start."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdout: str
    stderr: str
    stdout_capture: int = 10 * 1024 * 1024
    """Bytes kept of the output; half its beginning, half its end."""
    stderr_capture: int = 10 * 1024 * 1024
    scratch: str = ""
    """What is its `/tmp` where it is contained; `cwd` and this are then all that it can write to."""
    umask: int = shepherd.UMASK
    rlimits: dict[str, int] = {}
    """By their names in `resource` without `RLIMIT_`."""
    tasks: int = 0
    """Processes and threads at most, if it is contained and the kernel counts them for a container; 0: not bounded."""
    deadline: float | None = None
    """Of `shepherd.now()`: it is killed then unless told another time, and not started afterwards."""


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended, and what it and all its descendants used."""

    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    """Of its main process."""
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0
    """Of the largest single process."""
    expired: bool = False
    """Killed at its deadline."""
    stuck: int = 0
    """Processes that even SIGKILL did not end."""
    lost: bool = False
    """The shepherd died, and the process with it."""


class Started(msgspec.Struct, frozen=True, tag_field="is", tag="started"):
    """The program of a process runs."""

    id: int
    pid: int
    container: int = 0


class Contained(msgspec.Struct, frozen=True, tag_field="is", tag="contained"):
    """Whether payloads can be contained: why not, or an empty text."""

    error: str


class FailedToStart(msgspec.Struct, frozen=True, tag_field="is", tag="failed_to_start"):
    """The program could not be started, by the fault of the job or of the node."""

    id: int
    error: str
    fault: str


class StrayEnded(msgspec.Struct, frozen=True, tag_field="is", tag="stray"):
    """A descendant ended that its own parent did not wait for."""

    id: int
    user_seconds: float
    system_seconds: float


class Pong(msgspec.Struct, frozen=True, tag_field="is", tag="pong"):
    """The shepherd lives."""

    id: int


class Exited(ProcessEnd, frozen=True, kw_only=True, tag_field="is", tag="exited"):
    """A process and all its descendants ended."""

    id: int


FromShepherd: TypeAlias = Started | FailedToStart | StrayEnded | Exited | Contained | Pong

_decoder: msgspec.json.Decoder[FromShepherd] = msgspec.json.Decoder(FromShepherd)
_encoder = msgspec.json.Encoder()


def encoded(order: dict[str, object]) -> bytes:
    """Return an order to the shepherd as a line."""
    return _encoder.encode(order) + b"\n"


def decoded(line: bytes) -> FromShepherd:
    """Return what a line from the shepherd says."""
    return _decoder.decode(line)
