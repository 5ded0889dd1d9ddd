"""Files by URL: what a job reads before it starts, and where its results go after it has ended."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Bytes, Line

REPLICAS_LIMIT = 20
"""The most places from which one input may come."""
TARGETS_LIMIT = 5
"""The most places to which one output goes."""
FILES_LIMIT = 1_000
"""The most inputs, and the most outputs, of one job."""

Sources: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=REPLICAS_LIMIT)]
Targets: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=TARGETS_LIMIT)]


class InputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file that is fetched into the job's directory before the payload starts."""

    name: Line
    """The path in the job's directory."""
    sources: Sources
    """URLs of equal replicas; they are tried in this order."""
    size: Bytes | None = None
    """The size in bytes; None if it is not known. A file of another size is refused."""
    checksum: Line = ""
    """`sha256:`, `md5:` or `adler32:` and the digits in hexadecimal; empty if it is not known. A file with another is refused."""
    executable: bool = False
    """Whether the payload may execute the file."""


class OutputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of the job's directory that is sent to each of its targets after the payload has ended."""

    name: Line
    """The path in the job's directory."""
    targets: Targets
    """URLs; the file is sent to each of them."""
    optional: bool = False
    """Whether the job may succeed without the file. Otherwise a file that is missing or cannot be sent fails the attempt."""


Inputs: TypeAlias = Annotated[tuple[InputFile, ...], msgspec.Meta(max_length=FILES_LIMIT)]
Outputs: TypeAlias = Annotated[tuple[OutputFile, ...], msgspec.Meta(max_length=FILES_LIMIT)]
