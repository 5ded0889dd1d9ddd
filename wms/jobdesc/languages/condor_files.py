"""The files of a submit file's jobs: the program, inputs, standard streams, and outputs. Paths are those of the submit machine."""

import glob
import posixpath
import re
from collections.abc import Sequence
from typing import Final

from wms.jobdesc.languages.condor_job import CondorJob, Handler, origin_of
from wms.jobdesc.languages.condor_text import Command

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_SYSTEM: Final = ("/bin/", "/usr/", "/sbin/", "/opt/")


def names_of(text: str) -> Sequence[str]:
    """Return the names of a list with commas, whose text may be in double quotes."""
    return [name for each in text.strip().strip('"').split(",") if (name := each.strip())]


def is_no(text: str) -> bool:
    """Return whether a text means false."""
    return text.strip().strip('"').lower() in ("false", "no", "f", "0")


def _here(job: CondorJob, path: str) -> str:
    """Return a path of the submit machine, relative to the document: paths are relative to `initialdir`."""
    return posixpath.join(job.text("initialdir").strip('"'), path)


def executable(job: CondorJob, command: Command) -> None:
    """Put the program into the draft. It is a file of the submit machine that goes with the job, unless `transfer_executable` is false.

    Its path is relative to the document, not to `initialdir`.
    """
    path, origin = command.value.strip('"'), origin_of(command)
    own = path.rpartition("/")[2]
    sent = {each.rstrip("/").rpartition("/")[2] for each in names_of(job.text("transfer_input_files"))}
    if not own:
        job.draft.problem(origin, "names no program")
    elif is_no(job.text("transfer_executable")):
        if path.startswith("/"):
            job.draft.put("executable", path, origin, "is the program of that path on the node")
        elif path == own and job.text("docker_image"):
            job.draft.put("executable", path, origin, "is the program of that name in the image")
        elif path.removeprefix("./") in sent:
            job.draft.put("executable", f"./{own}", origin)
        else:
            job.draft.problem(
                origin, "is not sent, and has no absolute path", "say transfer_executable = true"
            )
    elif path.startswith("/") and job.is_in_container() and not job.text("transfer_executable"):
        if path.startswith(_SYSTEM):
            job.draft.put("executable", path, origin, "is the program of that path in the image")
        else:
            job.draft.problem(
                origin, "is sent by some versions of HTCondor, and by others not", "say transfer_executable"
            )
    else:
        job.draft.add_input(own, path, origin, executable=True)
        job.draft.put("executable", f"./{own}", origin)


def input_files(job: CondorJob, command: Command) -> None:
    """Add the input files. A directory with a slash at its end gives the job its content, without one the directory."""
    for each in names_of(command.value):
        source = each if _URL.match(each) else _here(job, each)
        name = _name_of(job, each)
        if name.rpartition("/")[2] in (".", ".."):
            job.draft.impossible(origin_of(command), f"{each} is a directory without a name; write {each}/")
        else:
            job.draft.add_input(name, source, origin_of(command))
    if not names_of(command.value):
        job.draft.kept(origin_of(command))


def _name_of(job: CondorJob, path: str) -> str:
    """Return the name of an input in the job's directory; empty if it is the content of a directory."""
    relative = posixpath.normpath(path)
    if job.text("preserve_relative_paths").lower() in ("true", "yes", "t", "1") and not (
        relative.startswith(("/", "..")) or _URL.match(path)
    ):
        return "" if relative == "." else relative
    return "" if path.endswith("/") else path.rpartition("/")[2]


def when_outputs(job: CondorJob, command: Command) -> None:
    """Take `when_to_transfer_output`. Outputs are kept when the job ends. What an attempt that is cut short has left is not."""
    match command.value.strip().strip('"').lower():
        case "on_exit" | "on_success" | "":
            job.draft.kept(origin_of(command))
        case "on_exit_or_evict":
            sentence = (
                "an attempt that is cut short starts afresh, as HTCondor's does where a machine is lost"
            )
            job.draft.omitted(origin_of(command), sentence)
        case _:
            job.draft.impossible(origin_of(command), "is no time that is known")


def standard_input(job: CondorJob, command: Command) -> None:
    """Put the file of standard input into the draft, and send it along."""
    path, origin = command.value.strip('"'), origin_of(command)
    if path in ("/dev/null", ""):
        job.draft.kept(origin)
    elif is_no(job.text("transfer_input")):
        job.draft.impossible(
            origin, "is a file of the node, and standard input is one of the job's directory"
        )
    elif not (own := path.rpartition("/")[2]):
        job.draft.problem(origin, "is a directory, and standard input a file", "use transfer_input_files")
    else:
        job.draft.add_input(own, _here(job, path), origin)
        job.draft.put("stdin", own, origin)


def stream_into(field: str) -> Handler:
    """Return a handler that puts the name of a standard stream's file into a field, without its directory."""

    def handler(job: CondorJob, command: Command) -> None:
        path, origin = command.value.strip('"'), origin_of(command)
        name = path.rpartition("/")[2]
        if path in ("/dev/null", ""):
            job.draft.omitted(origin, "the stream is kept all the same")
        elif name == path:
            job.draft.put(field, name, origin)
        else:
            job.draft.put(
                field, name, origin, f"is {name} in the job's directory, and {field}.txt of its results"
            )

    return handler


def output_files(job: CondorJob, command: Command) -> None:
    """Put the outputs into the draft. Those that `transfer_output_remaps` sends to a URL are left to it."""
    remapped = {name for name, target in _remaps(job.text("transfer_output_remaps")) if _URL.match(target)}
    names, origin = names_of(command.value), origin_of(command)
    for name in names:
        if name in remapped:
            continue
        plain = name.rstrip("/")
        if plain in (".", ""):
            job.draft.append("output_sandbox", "*", origin, "is all of the job's directory")
        elif "/" in plain:
            sentence = f"comes back as {plain}, with its directory"
            job.draft.append("output_sandbox", _literal(plain), origin, sentence)
        else:
            job.draft.append("output_sandbox", _literal(plain), origin)
    if not names or not set(names) - remapped:
        job.draft.kept(origin)


def _literal(name: str) -> str:
    # Outputs of HTCondor are names, ours are patterns.
    return glob.escape(name)


def all_outputs(job: CondorJob, queue: Command) -> None:
    """Let all files of the job's directory come back, as HTCondor does unless a command names the outputs."""
    sentence = "all files of the job's directory come back, but those whose names begin with a dot"
    job.draft.append("output_sandbox", "*", origin_of(queue), sentence)


def output_remaps(job: CondorJob, command: Command) -> None:
    """Put the outputs with URLs into the draft. Other outputs come back by the names that the job gave them, wherever they are to lie."""
    origin = origin_of(command)
    for name, target in _remaps(command.value):
        if _URL.match(target):
            job.draft.append("outputs", {"name": name, "targets": [target]}, origin)
        elif target.rpartition("/")[2] == name.rpartition("/")[2]:
            job.draft.translated(origin, f"{name} comes back by its name; wms output says where to")
        else:
            job.draft.omitted(origin, f"{name} comes back by its name, and not as {target}")
    if not _remaps(command.value):
        job.draft.kept(origin)


def _remaps(text: str) -> Sequence[tuple[str, str]]:
    pairs = [each.partition("=") for each in text.strip().strip('"').split(";") if each.strip()]
    return [(name.strip(), target.strip()) for name, _, target in pairs]


def image(job: CondorJob, command: Command) -> None:
    """Put the image of the job's container into the draft."""
    name, origin = command.value.strip().strip('"'), origin_of(command)
    if command.key == "docker_image" and not _URL.match(name):
        job.draft.put("container", f"docker://{name}", origin, "becomes container")
    elif _URL.match(name) or name.startswith("/cvmfs/"):
        job.draft.put("container", name, origin, "becomes container")
    elif not name:
        job.draft.kept(origin)
    else:
        job.draft.impossible(origin, "is a file of the submit machine; images come from registries or /cvmfs")
