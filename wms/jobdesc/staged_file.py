"""Files by URL: inputs that are fetched before a job starts, and outputs that are sent after it has ended."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import Bytes, Line

REPLICAS_LIMIT = 20
"""How many URLs of replicas one input may have."""
TARGETS_LIMIT = 5
"""To how many URLs one output may be sent."""
FILES_LIMIT = 1_000
"""How many inputs one job may have, and how many outputs."""

Sources: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=REPLICAS_LIMIT)]
Targets: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=TARGETS_LIMIT)]


class InputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file that is fetched into the job's directory before the payload starts."""

    name: Line
    """The path of the file in the job's directory."""
    sources: Sources
    """The URLs of identical copies of the file. They are tried in this order until one can be fetched."""
    size: Bytes | None = None
    """The size in bytes; None if unknown. If the fetched file has another size, it is refused."""
    checksum: Line = ""
    """`sha256:`, `md5:` or `adler32:` and the digits in hexadecimal; empty if unknown. A file with another checksum is
    refused."""
    executable: bool = False
    """Whether the file gets execute permission."""


class OutputFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of the job's directory that is sent to each of its target URLs after the payload has ended."""

    name: Line
    """The path of the file in the job's directory."""
    targets: Targets
    """The URLs to which the file is sent, to all of them."""
    optional: bool = False
    """Whether the job may succeed without the file. If False, a file that is missing or cannot be sent fails the attempt."""


Inputs: TypeAlias = Annotated[tuple[InputFile, ...], msgspec.Meta(max_length=FILES_LIMIT)]
Outputs: TypeAlias = Annotated[tuple[OutputFile, ...], msgspec.Meta(max_length=FILES_LIMIT)]
