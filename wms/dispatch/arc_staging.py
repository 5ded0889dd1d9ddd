"""Files by URL that an ARC element moves itself for a job that is sent directly, by its own data staging.

The element fetches inputs before it gives the job to its batch system, and sends outputs after the job has ended. ARC's URLs may carry
options and metadata in a syntax of its own. Only plain URLs are passed on, so that nobody can set these.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Literal

from wms.dispatch.direct import ENDED, WORK, StagedFiles, StagedInput

SCHEMES = ("http", "https", "dav", "davs", "root", "gsiftp", "srm")
"""The URL schemes for which ARC has plugins. An element without the plugin of a scheme fails the job's stage-in or stage-out."""
CORRUPT = "FILE_CORRUPT"
"""The word that the job's script prints if an input has another size or checksum than it must have."""
STAGED, LEAVING = "staged", "leaving"
"""The names of two files in the job's directory: the list of those files moved by URL that are not fetched back, and of those to send at the end."""

_URL = re.compile(
    r"([a-z]+)://((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)(/[A-Za-z0-9._~%/+=,?&-]*)"
)
_NAME = re.compile(r"[A-Za-z0-9._+-][A-Za-z0-9._+/-]*")
_TOOLS = {"sha256": "sha256sum", "md5": "md5sum"}
"""The command that computes a checksum on the node, by the checksum's kind."""
_FAILED = re.compile(r"failed in data staging", re.IGNORECASE)
"""What A-REX writes in a job's errors when its stage-in or stage-out failed. A-REX has no error code for it."""
_OWN_COPY = "cache=copy"
"""The URL option by which a job gets its own copy of a file that the element caches, so that it may change the file."""


def staging_fault(name: str, url: str, checksum: str = "") -> str:
    """Return why ARC cannot move the file `name` of the working directory from or to this URL, or not verify its checksum; empty if it can."""
    found = _URL.fullmatch(url)
    if found is None or found[1] not in SCHEMES:
        return f"ARC takes plain URLs of the schemes {', '.join(SCHEMES)}"
    if not _NAME.fullmatch(name) or name.endswith("/") or "//" in name:
        return f"{name!r} has signs that the file names of an ARC element's jobs must not have"
    if checksum and checksum.partition(":")[0] not in _TOOLS:
        return f"no checksum of the kind {checksum.partition(':')[0]} is verified there"
    return ""


def staging_of(reason: str) -> Literal["", "failed", "corrupt"]:
    """Return what went wrong with the files by URL, by A-REX's text on a job's end: "failed", "corrupt", or empty for nothing.

    "failed": one could not be fetched or sent. "corrupt": an input had a wrong size or checksum.
    """
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
    """Return shell lines that check the size and checksum of each input, and end the job's script if one is wrong."""
    if not files:
        return ""
    kept = {each.name for each in files.outputs if each.kept}
    names = sorted(({each.name for each in files.inputs} | {each.name for each in files.outputs}) - kept)
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
    """Return shell lines that delete the outputs unless the program succeeded, so that ARC does not send them. `$1` is its exit code."""
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
