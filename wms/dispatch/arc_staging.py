"""Files by URL that an ARC element moves itself for a job that is sent directly, by its own data staging.

The element fetches inputs before it gives the job to its batch system, and sends outputs after the job has ended. Its own syntax of URLs
has options and metadata that no other has, so that only plain URLs are passed on.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Literal

from wms.dispatch.direct import ENDED, WORK, StagedFiles, StagedInput

SCHEMES = ("http", "https", "dav", "davs", "root", "gsiftp", "srm")
"""The schemes that ARC has plugins for. An element that lacks one fails the job's stage-in or stage-out."""
CORRUPT = "FILE_CORRUPT"
"""The word in the job's output that says that an input is not what it must be."""
STAGED, LEAVING = "staged", "leaving"
"""The names of two files in the job's directory: lists of all files by URL, and of those that are to be sent."""

_URL = re.compile(
    r"([a-z]+)://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)(/[A-Za-z0-9._~%/+=,?&-]*)"
)
_NAME = re.compile(r"[A-Za-z0-9._+-][A-Za-z0-9._+/-]*")
_TOOLS = {"sha256": "sha256sum", "md5": "md5sum"}
"""The tools that verify checksums on the node, by the checksum's kind."""
_FAILED = re.compile(r"failed in data staging", re.IGNORECASE)
"""A-REX's text on a failed stage-in or stage-out; there is no code for it."""
_OWN_COPY = "cache=copy"
"""The option of a URL by which a job gets a copy of its own of a file that the element caches."""


def staging_fault(name: str, url: str, checksum: str = "") -> str:
    """Return why ARC cannot move a file between this URL and the path `name`, or not verify it; empty if it can."""
    found = _URL.fullmatch(url)
    if found is None or found[1] not in SCHEMES:
        return f"ARC takes plain URLs of the schemes {', '.join(SCHEMES)}"
    if not _NAME.fullmatch(name) or name.endswith("/") or "//" in name:
        return f"{name!r} has signs that the file names of an ARC element's jobs must not have"
    if checksum and checksum.partition(":")[0] not in _TOOLS:
        return f"no checksum of the kind {checksum.partition(':')[0]} is verified there"
    return ""


def staging_of(reason: str) -> Literal["", "failed", "corrupt"]:
    """Return what A-REX's text on a job's end tells of its files by URL: see `PilotSighting.staging`."""
    if CORRUPT in reason:
        return "corrupt"
    return "failed" if _FAILED.search(reason) else ""


def input_relations(files: StagedFiles) -> str:
    """Return the entries for the inputs in xRSL's `inputFiles`."""
    return "".join(f'("{WORK}/{each.name}" "{_copied(each.url)}")' for each in files.inputs)


def output_relations(files: StagedFiles) -> str:
    """Return the entries for the outputs in xRSL's `outputFiles`."""
    return "".join(f'("{WORK}/{each.name}" "{each.url}")' for each in files.outputs)


def preparation(files: StagedFiles) -> str:
    """Return shell lines that verify the inputs, and end the script if one is not what it must be."""
    if not files:
        return ""
    names = sorted({each.name for each in files.inputs} | {each.name for each in files.outputs})
    return "\n".join(
        (
            f'corrupt() {{ echo "{CORRUPT}: $1" >&2; exit 70; }}',
            *_written(STAGED, names),
            *_written(LEAVING, sorted({each.name for each in files.outputs})),
            *(line for each in files.inputs for line in _verified(each)),
            "",
        )
    )


def conclusion(files: StagedFiles) -> str:
    """Return shell lines that keep the outputs from being sent unless the program ended well; its exit code is `$1`."""
    if not files.outputs:
        return ""
    good = "|".join(str(each) for each in files.success_exit_codes)
    return (
        f"how=$1\n    [ ! -e {ENDED} ] || how=ended\n    "
        f'case $how in {good}) ;; *) while read -r name; do rm -f "$name"; done < {LEAVING} ;; esac\n    '
    )


def _copied(url: str) -> str:
    found = _URL.fullmatch(url)
    assert found is not None
    scheme, host, path = found.groups()
    return f"{scheme}://{host};{_OWN_COPY}{path}"


def _written(file: str, names: list[str]) -> Iterator[str]:
    yield f"cat > {file} <<'.'"
    yield from (f"{WORK}/{name}" for name in names)
    yield "."


def _verified(each: StagedInput) -> Iterator[str]:
    path = shlex.quote(f"{WORK}/{each.name}")
    if each.size is not None:
        told = shlex.quote(f"{each.name} has not the {each.size} bytes that it must have")
        yield f'[ "$(wc -c < {path})" -eq {each.size} ] || corrupt {told}'
    if each.checksum:
        kind, _, digits = each.checksum.partition(":")
        told = shlex.quote(f"{each.name} has another {kind} checksum than it must have")
        yield f'[ "$({_TOOLS[kind]} < {path})" = "{digits.lower()}  -" ] || corrupt {told}'
    if each.executable:
        yield f"chmod u+x {path}"
