"""Long lists of parameters: cut into chunks that travel apart, and judged by what can be told of them all at once."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc import column
from wms.jobdesc.array import CHUNK
from wms.jobdesc.description import JobDescription
from wms.jobdesc.problem import Problem
from wms.jobdesc.validation import ARRAY_LIMIT, PARAMETERS_LIMIT, validate
from wms.messages.commands import AddChunks

INLINE_BYTES = 400_000
"""A description with lists of more bytes than this goes without them; they go before it."""
APART_BYTES = 800_000

Chunk = dict[str, bytes]
"""The values of at most a thousand jobs: by name, a JSON list."""


class LongLists(msgspec.Struct, frozen=True):
    """The lists of a description, too long to travel in it."""

    chunks: list[Chunk]
    closely: bool
    """Whether each value is to be looked at."""
    problems: Sequence[Problem]
    """Everything that is wrong with the description."""


def cut(description: JobDescription, place: str) -> LongLists | None:
    """Return the lists of a description, if they are long; None also where a rule is broken that tells more of it."""
    chunks = _chunks(description.parameters)
    if not chunks:
        return None
    if _are_regular(description) and _are_unescaped(chunks):
        for closely in (False, True):
            if _are_right(description, chunks, closely=closely):
                return LongLists(chunks, closely, ())
    return LongLists(chunks, closely=True, problems=validate(description, place))


def _chunks(lists: Mapping[str, Sequence[str]]) -> list[Chunk]:
    try:
        count = max(map(len, lists.values()))
        if count > ARRAY_LIMIT:
            return []
        chunks = column.cut(lists, count)
        return chunks if sum(map(_size, chunks)) > INLINE_BYTES else []
    except (AttributeError, TypeError, ValueError, OverflowError):
        return []


def _are_regular(description: JobDescription) -> bool:
    """Tell whether lists of one length, of texts, say how many jobs these are."""
    lists = description.parameters.values()
    return (
        description.array is None
        and len(set(map(len, lists))) == 1
        and all(isinstance(values, list | tuple) and set(map(type, values)) == {str} for values in lists)
    )


def _are_unescaped(chunks: Sequence[Chunk]) -> bool:
    """Tell whether the chunks may be read without decoding them; otherwise it costs less to look at the values at hand."""
    return all(raw.isascii() and b"\\" not in raw for chunk in chunks for raw in chunk.values())


def _are_right(description: JobDescription, chunks: Sequence[Chunk], *, closely: bool) -> bool:
    columns = [{name: column.read(raw, closely=closely) for name, raw in chunk.items()} for chunk in chunks]
    size = sum(each.size for chunk in columns for each in chunk.values())
    few = msgspec.structs.replace(description, parameters=column.small(columns))
    return size <= PARAMETERS_LIMIT and not validate(few)


def apart(lists: LongLists, prefix: str, client: str) -> Iterator[AddChunks]:
    """Yield the messages that bring the lists, as many chunks as go into each."""
    start = size = 0
    for n, chunk in enumerate(lists.chunks):
        here = _size(chunk)
        if here > APART_BYTES:
            raise Rejected(
                "PARAMETERS_TOO_LARGE",
                f"the parameters of the jobs {n * CHUNK:,} to {(n + 1) * CHUNK - 1:,} are {here:,} bytes, over {APART_BYTES:,}",
                "put them into a file that goes along (--input), and let each job find its own by {n}",
            )
        if size + here > APART_BYTES:
            yield _values(lists, start, n, prefix, client)
            start, size = n, 0
        size += here
    yield _values(lists, start, len(lists.chunks), prefix, client)


def _values(lists: LongLists, start: int, end: int, prefix: str, client: str) -> AddChunks:
    return AddChunks(
        command_id=CommandId(f"{prefix}/{start * CHUNK}"),
        chunks=tuple(
            {name: msgspec.Raw(values) for name, values in chunk.items()} for chunk in lists.chunks[start:end]
        ),
        closely=lists.closely,
        client=client,
    )


def _size(chunk: Chunk) -> int:
    """Return the bytes of a chunk as JSON, and of what separates it from the next."""
    return sum(len(name) + len(values) + len('"":,') for name, values in chunk.items()) + len("{},")
