"""The messages between the agent and its shepherd as structs. The shepherd has no dependencies and writes plain JSON."""

from typing import TypeAlias

import msgspec

from services.job_agent.payload import shepherd


class SpawnOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to start a process: its program, environment, directories, outputs and limits."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdout: str
    stderr: str
    stdin: str = ""
    """The file that is the standard input; empty for none."""
    stdout_capture: int = 10 * 1024 * 1024
    """The bytes of the output to keep, half of them from its beginning and half from its end."""
    stderr_capture: int = 10 * 1024 * 1024
    scratch: str = ""
    """The directory that a contained process has as its `/tmp`. It can write to no other directory of the disk but `cwd`."""
    umask: int = shepherd.UMASK
    rlimits: dict[str, int] = {}
    """Resource limits by their names in Python's `resource` module, without `RLIMIT_`."""
    tasks: int = 0
    """The most processes and threads, for a contained process on a kernel that counts them per container; 0: no bound."""
    deadline: float | None = None
    """The time at which the process is killed, in seconds of `shepherd.now()`; None for no deadline.

    A later order may change the deadline. A process is not started after it.
    """


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process, and the resources that it and all its descendants used."""

    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    """The run time of the main process, in seconds."""
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0
    """The peak memory of the largest single process."""
    expired: bool = False
    """Whether the process was killed at its deadline."""
    stuck: int = 0
    """The number of processes that even SIGKILL did not end."""
    lost: bool = False
    """Whether the process ended because the shepherd died."""


class Started(msgspec.Struct, frozen=True, tag_field="is", tag="started"):
    """The message that the program of a process runs, with the pids of its main process and its container (0 for none)."""

    id: int
    pid: int
    container: int = 0


class Contained(msgspec.Struct, frozen=True, tag_field="is", tag="contained"):
    """The message whether payloads can be contained; `error` is the reason if they cannot, else empty."""

    error: str


class FailedToStart(msgspec.Struct, frozen=True, tag_field="is", tag="failed_to_start"):
    """The message that a program could not be started; `fault` is «job» or «node»."""

    id: int
    error: str
    fault: str


class StrayEnded(msgspec.Struct, frozen=True, tag_field="is", tag="stray"):
    """The message that a descendant of a process ended without its own parent waiting for it, with its CPU seconds."""

    id: int
    user_seconds: float
    system_seconds: float


class Pong(msgspec.Struct, frozen=True, tag_field="is", tag="pong"):
    """The answer to a ping, which shows that the shepherd lives."""

    id: int


class Exited(ProcessEnd, frozen=True, kw_only=True, tag_field="is", tag="exited"):
    """The message that a process and all its descendants ended."""

    id: int


FromShepherd: TypeAlias = Started | FailedToStart | StrayEnded | Exited | Contained | Pong

_decoder: msgspec.json.Decoder[FromShepherd] = msgspec.json.Decoder(FromShepherd)
_encoder = msgspec.json.Encoder()


def encoded(order: dict[str, object]) -> bytes:
    """Return an order to the shepherd as one line of JSON."""
    return _encoder.encode(order) + b"\n"


def decoded(line: bytes) -> FromShepherd:
    """Return the message in a line of JSON from the shepherd."""
    return _decoder.decode(line)
