"""Mutated messages: valid examples of every topic with numbers, texts, lists, types or bytes changed, the same for the same seed."""

import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tests.unit.messages.examples import FULL, GROWN, MINIMAL, topic_of
from wms.messages.wire import PAYLOAD_LIMIT, encode

Path: TypeAlias = tuple[str | int, ...]

NUMBERS: Sequence[Any] = (
    0, 1, -1, 0.5, 127, 2**16, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**63) - 1, 10**308,
    1e308, -1e308, 5e-324, -0.0,
)  # fmt: skip
TEXTS: Sequence[str] = (
    "", " ", "\0", "a\0b", "\x1b[2J\x1b]0;owned\x07", "'; drop table job; --", "%s%n", "../../etc/passwd", "*", "any", "\u202e",
    "\ufffe", "\ud800", "💣" * 300, "x" * 256, "x" * 5_000, "x" * 400_000, "(" * 5_000, "!" * 20_000, "1+" * 8_000 + "1",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-02-30T25:61:61Z", "NaN", "null", "-1", "1e999",
)  # fmt: skip
IDS = ("command_id", "query_id", "report_id", "request_id")
WHOLE = 0.25
"""So many are sent as they are, but for their ids."""
DEEPER = 0.85
"""Of so many a part is changed, not the whole; the same again at each step inwards."""
RAW = 0.1
"""Of so many the bytes are changed, not the values."""


class Mutator:
    """Makes messages of each topic from the examples."""

    def __init__(self, seed: int, topics: Mapping[str, str]) -> None:
        """`topics` are by the names in the examples those to send to."""
        self._rng = random.Random(seed)
        self._numbers = itertools.count(1)
        self._changes: Sequence[Callable[[Any], Any]] = (
            self._number, self._text, self._other_type, self._longer, self._emptied, self._unknown, self._nested,
        )  # fmt: skip
        self._examples: dict[str, list[Any]] = {topic: [] for topic in topics.values()}
        for examples in (FULL, MINIMAL, GROWN):
            for name, message in examples.items():
                topic = topics.get(topic_of(name.partition(".")[0]))
                if topic is not None:
                    self._examples[topic].append(json.loads(encode(message)))

    def message(self, topic: str) -> bytes:
        """Return one more message for this topic."""
        value = json.loads(json.dumps(self._rng.choice(self._examples[topic])))
        for name in IDS:
            if name in value:
                value[name] = f"fuzz-{next(self._numbers)}"
        if self._rng.random() >= WHOLE:
            for _ in range(self._rng.choice((1, 1, 2, 4))):
                value = self._changed(value)
        # Half a character is written as an escape, which JSON allows and UTF-8 does not.
        try:
            payload = json.dumps(value).encode("ascii")
        except RecursionError:
            # Nested several times over: deeper than this side can write.
            payload = b'{"a":' * 50_000
        if self._rng.random() < RAW:
            payload = self._damaged(payload)
        return payload[:PAYLOAD_LIMIT]

    def _changed(self, value: Any) -> Any:
        return _replaced(value, self._path(value), self._rng.choice(self._changes))

    def _path(self, value: Any) -> Path:
        """Return a way into the value, one step after the other: to list them all takes minutes of what was repeated twice."""
        path: Path = ()
        while isinstance(value, dict | list) and value and self._rng.random() < DEEPER:
            key = (
                self._rng.choice(list(value)) if isinstance(value, dict) else self._rng.randrange(len(value))
            )
            path, value = (*path, key), value[key]
        return path

    def _number(self, _: Any) -> Any:
        return self._rng.choice(NUMBERS)

    def _text(self, _: Any) -> Any:
        return self._rng.choice(TEXTS)

    def _other_type(self, _: Any) -> Any:
        return self._rng.choice((None, True, False, [], {}, "text", 7, [[]], [None], {"": {}}))

    def _longer(self, value: Any) -> Any:
        times = self._rng.choice((2, 10, 1_000, 5_000))
        if isinstance(value, list):
            return (value or [1]) * min(times, 1 + 200_000 // (1 + len(json.dumps(value))))
        if isinstance(value, dict):
            return value | {f"key{n}": n for n in range(times)}
        return [value] * min(times, 1 + 200_000 // (1 + len(json.dumps(value))))

    def _emptied(self, value: Any) -> Any:
        return type(value)() if isinstance(value, list | dict | str) else None

    def _unknown(self, value: Any) -> Any:
        return value | {self._rng.choice(TEXTS[:12]): 1} if isinstance(value, dict) else {"type": value}

    def _nested(self, value: Any) -> Any:
        for _ in range(self._rng.choice((3, 50, 400))):
            value = [value] if self._rng.random() < 0.5 else {"a": value}
        return value

    def _damaged(self, payload: bytes) -> bytes:
        at = self._rng.randrange(len(payload))
        return self._rng.choice(
            (
                b"",
                payload[:at],
                payload[:at] + bytes([self._rng.randrange(256)]) + payload[at + 1 :],
                payload[:at] + self._rng.randbytes(40) + payload[at:],
                self._rng.randbytes(self._rng.choice((1, 100, 100_000))),
                b"[" * 100_000,
                payload + payload,
                b"\xff\xfe" + payload,
            )
        )


def _replaced(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    value[path[0]] = _replaced(value[path[0]], path[1:], change)
    return value
