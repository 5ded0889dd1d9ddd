"""Bounded expansion of compressed Kafka batches: a batch that would grow too large is skipped and reported.

The library expands a whole batch before its size is known, and a few kB of zeros become gigabytes. Here each codec writes into a buffer of
bounded size. A batch that does not fit, or cannot be read, becomes one record with a fault.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import cramjam
from aiokafka.consumer import fetcher
from aiokafka.record import default_records, legacy_records
from aiokafka.record._crecords import default_records as fast_records
from aiokafka.record._crecords import legacy_records as fast_legacy_records

from wms.errors import WmsError

Bytes: TypeAlias = bytes | memoryview

EXPANDED_BYTES: Final = 8 * 1024 * 1024
"""How many bytes a batch may have after expansion. This system's producers compress nothing and send at most 1 MB."""

_XERIAL_HEAD: Final = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES: Final = 16

FAULT: Final = object()
"""The header under which a faulty record carries its reason. It is an object and not a text, so that no sender can forge it."""


class TooLarge(WmsError):  # noqa: N818 - an outcome
    """A compressed batch would have more than `EXPANDED_BYTES` bytes after expansion."""


def _gzip(data: Bytes) -> bytes:
    members: list[bytes] = []
    left = EXPANDED_BYTES
    while data:
        expander = zlib.decompressobj(wbits=31)
        members.append(expander.decompress(data, left + 1))
        left -= len(members[-1])
        if left < 0:
            raise _too_large()
        if not expander.eof:
            raise ValueError("a gzip stream is cut off")
        data = expander.unused_data
    return b"".join(members)


def _into_buffer(expand: Callable[[Any, Any], int]) -> Callable[[Bytes], bytes]:
    def bounded(data: Bytes) -> bytes:
        return _expanded(expand, data, EXPANDED_BYTES)

    return bounded


def _expanded(expand: Callable[[Any, Any], int], data: Bytes, most: int) -> bytes:
    # Small ones first: allocating the largest takes a millisecond each time.
    size = min(most, max(65_536, 8 * len(memoryview(data))))
    while True:
        buffer = bytearray(size)
        try:
            return bytes(memoryview(buffer)[: expand(data, buffer)])
        except cramjam.DecompressionError as error:
            if size >= most:
                raise _too_large() from error
            size = min(most, 8 * size)


def _snappy(data: Bytes) -> bytes:
    whole = memoryview(data)
    if bytes(whole[: len(_XERIAL_HEAD)]) != _XERIAL_HEAD:
        return _snappy_block(whole, EXPANDED_BYTES)
    blocks: list[bytes] = []
    cursor, left = _XERIAL_HEAD_BYTES, EXPANDED_BYTES
    while cursor < len(whole):
        (size,) = struct.unpack_from("!i", whole, cursor)
        if not 0 < size <= len(whole) - cursor - 4:
            raise ValueError("a block of snappy is cut off")
        blocks.append(_snappy_block(whole[cursor + 4 : cursor + 4 + size], left))
        left -= len(blocks[-1])
        cursor += 4 + size
    return b"".join(blocks)


def _snappy_block(block: memoryview, most: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > most:
        raise _too_large()
    return bytes(cramjam.snappy.decompress_raw(block))


def _too_large() -> TooLarge:
    return TooLarge(f"a compressed batch cannot be expanded within {EXPANDED_BYTES:,} bytes")


_CODECS: Final = {
    "gzip_decode": _gzip,
    "snappy_decode": _snappy,
    "lz4_decode": _into_buffer(cramjam.lz4.decompress_into),
    "zstd_decode": _into_buffer(cramjam.zstd.decompress_into),
}


class FaultyRecord:
    """The one record that stands for all of a batch that cannot be read. Its offset is that of the batch's last record."""

    timestamp = 0
    timestamp_type = 0
    checksum = None
    key = None
    value = None

    def __init__(self, offset: int, fault: str) -> None:
        self.offset = offset
        self.headers = ((FAULT, fault),)


class _Batch:
    """A compressed batch that yields one faulty record if it cannot be expanded. Other attributes are the library's."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except Exception as error:  # noqa: BLE001 - whatever the bytes do to the codecs, the partition goes on
            fault = (
                str(error) if isinstance(error, TooLarge) else f"a compressed batch cannot be read: {error!r}"
            )
            yield FaultyRecord(self._batch.next_offset - 1, fault)


class BoundedRecords:
    """The batches in one answer to a fetch. It replaces the Kafka library's class, and bounds the expansion of compressed batches."""

    def __init__(self, data: Any) -> None:
        self._records = _LIBRARYS(data)

    def size_in_bytes(self) -> int:
        """Return the size of the whole answer in bytes, as it was received."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Return whether the answer has a further batch."""
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        """Return the next batch of records in the answer; None at its end."""
        batch = self._records.next_batch()
        plain = batch is None or getattr(batch, "compression_type", None) == 0
        return batch if plain else _Batch(batch)


_LIBRARYS = fetcher.MemoryRecords


def bound_expansion() -> None:
    """Make the Kafka library in this process expand compressed batches within `EXPANDED_BYTES`."""
    for module in (default_records, legacy_records, fast_records, fast_legacy_records):
        for name, bounded in _CODECS.items():
            if hasattr(module, name):
                setattr(module, name, bounded)
    fetcher.MemoryRecords = BoundedRecords
