"""The messages between an agent and its shepherd (the process that starts payloads), as structs. They are sent as JSON."""

from typing import TypeAlias

import msgspec

from services.job_agent.payload import shepherd


class SpawnOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to start a payload: program, arguments, environment, directories, output files and limits.

    `cwd` is its working directory. `stdout` and `stderr` are the files into which its output is copied.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdout: str
    stderr: str
    stdin: str = ""
    """The path of the file that is the payload's standard input. Empty: it has none."""
    stdout_capture: int = 10 * 1024 * 1024
    """How many bytes of the payload's standard output are stored: half from its beginning and half from its end."""
    stderr_capture: int = 10 * 1024 * 1024
    scratch: str = ""
    """The directory that an isolated payload has as its `/tmp`. On disk it can write only there and to `cwd`."""
    umask: int = shepherd.UMASK
    rlimits: dict[str, int] = {}
    """Resource limits for the kernel to enforce, by the names in Python's module `resource` without `RLIMIT_`, such as `FSIZE`."""
    has_image: bool = False
    """Whether the program is Podman or Apptainer, which makes a container itself. It is not started in a container of the shepherd."""
    has_network: bool = True
    """Whether the payload has the node's network. Without, it must be isolated, and has a loopback device of its own alone."""
    cgroup: str = ""
    """The directory of a cgroup to make for the payload alone. It is removed at the payload's end. Empty: it has none."""
    cgroup_limits: dict[str, str] = {}
    """The limits of the payload's cgroup, as texts by the names of the kernel's files, such as `memory.max`."""
    pid_file: str = ""
    """The file to which Podman writes the pid of the first process in its container. Empty: nothing writes it."""
    memory: int = 0
    """The most bytes of shared memory of System V of an isolated payload. 0: no limit. It applies only if the kernel lets the pilot set it."""
    is_stager: bool = False
    """Whether to start a stager in place of a program: the process that stages the payload's files (see stager.py)."""
    disk_bytes: int | None = None
    """The most bytes on disk that inputs may take that a stager unpacks. None: no limit."""
    given: dict[str, str] = {}
    """Secret files for the payload's scratch directory: texts by file name. They are removed at its end."""
    cpus: tuple[int, ...] = ()
    """The numbers of the processors that the payload may use. Empty: all that the pilot may."""
    tasks: int = 0
    """The most processes and threads of an isolated payload. 0: no limit. It applies only if the kernel can count them for one payload."""
    deadline: float | None = None
    """The time at which the payload is killed, in seconds since boot as `shepherd.now` returns them. None: never.

    It can be changed later. A payload is not started after its deadline.
    """


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the main process of a payload ended, and the resources that it and all its descendants used."""

    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    """The seconds from the start to the end of the main process."""
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0
    """The peak resident memory, in bytes, of the payload's largest single process."""
    expired: bool = False
    """Whether the process was killed at its deadline."""
    stuck: int = 0
    """How many processes of the payload had not ended some seconds after SIGKILL."""
    lost: bool = False
    """Whether the payload was killed because the shepherd died."""
    out_of_memory: bool = False
    """Whether the kernel killed the payload because its memory reached the limit of its cgroup."""
    is_untouched: bool = False
    """Whether the payload left its directories as they were made: empty, with their modes and attributes."""
    is_free: bool = False
    """Whether no other process has the payload's directories open. Then another payload may have them."""


class Started(msgspec.Struct, frozen=True, tag_field="is", tag="started"):
    """The shepherd's message that a payload runs. `id` is the payload's number, `pid` its main process.

    `container` is the pid of the first process of its container; 0: it has none.
    """

    id: int
    pid: int
    container: int = 0


class Contained(msgspec.Struct, frozen=True, tag_field="is", tag="contained"):
    """The shepherd's message whether it can isolate payloads in containers: `error` says why not; empty: it can.

    `network_fault` says why isolated payloads cannot run without a network; empty: they can.
    """

    error: str
    network_fault: str = ""


class FailedToStart(msgspec.Struct, frozen=True, tag_field="is", tag="failed_to_start"):
    """The shepherd's message that a payload's program could not be started: why, and who is at `fault`, `job` or `node`."""

    id: int
    error: str
    fault: str


class StrayEnded(msgspec.Struct, frozen=True, tag_field="is", tag="stray"):
    """The shepherd's message that a descendant of a payload ended whose parent did not wait for it, with its CPU seconds."""

    id: int
    user_seconds: float
    system_seconds: float


class Pong(msgspec.Struct, frozen=True, tag_field="is", tag="pong"):
    """The shepherd's answer to the order `ping`. It shows the agent that the shepherd does not hang."""

    id: int


class Exited(ProcessEnd, frozen=True, kw_only=True, tag_field="is", tag="exited"):
    """The shepherd's message that a payload and all its descendants have ended, except for the `stuck` ones."""

    id: int


FromShepherd: TypeAlias = Started | FailedToStart | StrayEnded | Exited | Contained | Pong

_decoder: msgspec.json.Decoder[FromShepherd] = msgspec.json.Decoder(FromShepherd)
_encoder = msgspec.json.Encoder()


def encoded(order: dict[str, object]) -> bytes:
    """Return an order to the shepherd as one line of JSON, with a line end."""
    return _encoder.encode(order) + b"\n"


def decoded(line: bytes) -> FromShepherd:
    """Return the message of the shepherd in one line of JSON. Raise msgspec.DecodeError if it is none."""
    return _decoder.decode(line)
