"""Parameter lists of job arrays that are too long for one message. They are cut into chunks and sent before the description."""

from collections.abc import Iterator, Sequence

import msgspec

from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc.array import CHUNK, in_chunks, jobs_in
from wms.jobdesc.description import JobDescription
from wms.messages.commands import AddChunks

INLINE_BYTES = 400_000
"""The largest size in bytes of a description that is sent with its parameter lists. The lists of a larger one are sent before it."""
APART_BYTES = 800_000

Chunk = dict[str, msgspec.Raw]
"""The parameter values of up to a thousand consecutive jobs: a JSON list for each parameter name."""

_encoder = msgspec.json.Encoder()


def apart(description: JobDescription, prefix: str, client: str) -> Iterator[AddChunks]:
    """Yield the messages with the parameter lists of a description, each with as many chunks as fit.

    The ids of the messages begin with `prefix`. `client` is the id of the client that gets the answers. Raise Rejected if the lists of a
    thousand jobs are too large for a message.
    """
    chunks = _cut(description)
    start = size = 0
    for n, chunk in enumerate(chunks):
        here = _size(chunk)
        if here > APART_BYTES:
            raise Rejected(
                "PARAMETERS_TOO_LARGE",
                f"the parameters of the jobs {n * CHUNK:,} to {(n + 1) * CHUNK - 1:,} are {here:,} bytes, over {APART_BYTES:,}",
                "put them into a file that goes along (--input), and let each job find its own by {n}",
            )
        if size + here > APART_BYTES:
            yield _message(chunks, start, n, prefix, client)
            start, size = n, 0
        size += here
    yield _message(chunks, start, len(chunks), prefix, client)


def _cut(description: JobDescription) -> list[Chunk]:
    return [
        {name: msgspec.Raw(_encoder.encode(values)) for name, values in chunk.items()}
        for chunk in in_chunks(description.parameters, jobs_in(description))
    ]


def _message(chunks: Sequence[Chunk], start: int, end: int, prefix: str, client: str) -> AddChunks:
    return AddChunks(
        command_id=CommandId(f"{prefix}/{start * CHUNK}"), chunks=tuple(chunks[start:end]), client=client
    )


def _size(chunk: Chunk) -> int:
    """Return the size in bytes of a chunk within a JSON list, with the comma after it."""
    return sum(len(name) + len(bytes(values)) + len('"":,') for name, values in chunk.items()) + len("{},")
