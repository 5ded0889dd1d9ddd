"""Hunts for documents of at most 10 kB that take much processor time or memory for their size, in every language and at every entrance.

`python -m tests.hostile.cost_search [--seconds N] [--documents N] [--seed N]` prints the dearest documents of each entrance, and fails
if one is over the bounds. It climbs: the dearest documents so far are changed further.
"""

import argparse
import gc
import json
import random
import re
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.hostile.entrances import ENTRANCES, PIECES, Entrance
from wms.errors import Rejected
from wms.jobdesc.validation import RULES

SIZE_LIMIT: Final = 10_000
SECONDS_PER_KILOBYTE: Final = 0.005
SECONDS_PER_DESCRIPTION: Final = 0.0004
SECONDS_PER_COPIED_BYTE: Final = 3e-7
"""What each description may take besides, where six bytes make one on its user's own machine (`Entrance.makes`), with all of the text in it."""
MEMORY_BYTES: Final = 32 * 1024 * 1024
KEPT: Final = 12
"""The dearest documents of an entrance that are changed further."""
REPEATS: Final = 5
"""So often is a document that seems too dear read again; the least time counts, as other processes disturb."""


FIELDS: Final = (*RULES, "defaults", "jobs", "p0", "a", "A")
SEPARATORS: Final = (b"", b"", b",", b"\n", b" ", b";", b"&&", b"||", b"+", b".")
_UNITS = re.compile(
    rb"""[^\n]+\n|"[^"]*"|'[^']*'|\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|<[^<>]*>[^<]*(?:</[^<>]*>)?|[\w.]+|(?s:\(.*\)|\[.*\]|\{.*\})"""
)
"""Lines, texts, brackets, elements and words; the spans may be in each other."""


class Cost(msgspec.Struct, frozen=True, order=True):
    """What it took to read one document."""

    ratio: float
    """The time or memory in relation to its bound, whichever is greater; above 1 it is too dear."""
    seconds: float
    memory: int
    document: bytes

    def __str__(self) -> str:
        size = len(self.document)
        memory = self.memory / 1024**2
        return f"{self.ratio:.2f} of the bound: {size:,} bytes, {self.seconds * 1e3:.1f} ms, {memory:.0f} MiB: {self.document[:150]!r}"


class Climb:
    """The search at one entrance."""

    def __init__(self, entrance: Entrance, rng: random.Random) -> None:
        self.entrance = entrance
        self._rng = rng
        self._best: list[Cost] = []
        for seed in entrance.seeds:
            self._keep(self._measured(seed))

    @property
    def dearest(self) -> Cost:
        """The dearest document so far."""
        return self._best[0]

    def step(self) -> None:
        """Change one of the dearest documents, and keep it if it is dearer than the least of them."""
        parent = self._best[min(int(self._rng.expovariate(0.4)), len(self._best) - 1)].document
        document = parent
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            document = self._changed(document)
        self._keep(self._measured(document))

    def _keep(self, cost: Cost) -> None:
        if any(each.document == cost.document for each in self._best):
            return
        self._best.append(cost)
        self._best.sort(reverse=True)
        del self._best[KEPT:]

    def _measured(self, document: bytes) -> Cost:
        cost = self._once(document)
        for _ in range(REPEATS):
            if cost.ratio <= 1:
                break
            cost = min(cost, self._once(document))
        return cost

    def _once(self, document: bytes) -> Cost:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.thread_time()
        with suppress(Rejected):
            self.entrance.read(document)
        seconds = time.thread_time() - began
        memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        allowed = SECONDS_PER_KILOBYTE * max(1.0, len(document) / 1_000)
        each = SECONDS_PER_DESCRIPTION + SECONDS_PER_COPIED_BYTE * len(document)
        allowed += each * self.entrance.makes(document)
        return Cost(max(seconds / allowed, memory / MEMORY_BYTES), seconds, memory, document)

    def _changed(self, document: bytes) -> bytes:
        changes = (
            self._units,
            self._units,
            self._units,
            self._json,
            self._json,
            self._repeated,
            self._inserted,
            self._cut,
            self._spliced,
            self._digits,
        )
        return self._rng.choice(changes)(document)[:SIZE_LIMIT]

    def _units(self, document: bytes) -> bytes:
        """Repeat a line, a bracket with what is in it, or a quoted text, with what separates it; perhaps another one each time."""
        found = [each.span() for each in _UNITS.finditer(document)]
        if not found:
            return document
        first, last = self._rng.choice(found)
        unit = document[first:last]
        separator = self._rng.choice(SEPARATORS)
        room = max(1, (SIZE_LIMIT - len(document)) // (len(unit + separator) + 2))
        times = self._rng.choice((2, min(room, 64), room, room))
        letters = [n for n, byte in enumerate(unit) if chr(byte).isalnum()]
        at = self._rng.choice(letters) if letters and self._rng.random() < 0.7 else None
        many = (
            unit if at is None else unit[: at + 1] + str(n).encode() + unit[at + 1 :] for n in range(times)
        )
        return document[:first] + separator.join(many) + document[last:]

    def _json(self, document: bytes) -> bytes:
        """Change a value of a JSON document, or give it one more field of a job."""
        try:
            tree = json.loads(document)
        except (ValueError, RecursionError):
            return self._inserted(document)
        if not isinstance(tree, dict | list):
            return self._inserted(document)
        where: list[tuple[Any, Any]] = []
        waiting = [tree]
        while waiting:
            each = waiting.pop()
            keys = each if isinstance(each, dict) else range(len(each))
            where += [(each, key) for key in keys]
            waiting += [each[key] for key in keys if isinstance(each[key], dict | list)]
            if len(where) > 1_000:
                break
        if not where:
            return document
        parent, key = self._rng.choice(where)
        if isinstance(parent, dict) and self._rng.random() < 0.5:
            key = self._rng.choice(FIELDS)
        parent[key] = self._value(parent[key] if not isinstance(parent, dict) else parent.get(key, ""))
        try:
            return json.dumps(tree, separators=(",", ":")).encode()
        except RecursionError:
            return document

    def _value(self, old: Any) -> Any:
        piece = self._rng.choice(PIECES).decode("utf-8", "replace")
        text = piece * max(1, int(2 ** self._rng.uniform(0, 13)) // len(piece))
        number = self._rng.choice((0, 1, 7, 1_000, 100_000, 1_000_000, 1e300, -1))
        return self._rng.choice((
            text, text, [text], [piece] * min(3_000, len(text)), [f"{piece}{n}" for n in range(len(text) // 8)],
            {f"{piece}{n}": old for n in range(len(text) // 16)}, [old] * (len(text) // 8), number, [number] * len(text),
            {"start": 0, "step": number, "count": 10_000}, {"executable": "x", "requirements": text}, [{}] * len(text),
        ))  # fmt: skip

    def _span(self, document: bytes) -> tuple[int, int]:
        first = self._rng.randrange(len(document) + 1)
        return first, min(len(document), first + int(2 ** self._rng.uniform(0, 9)))

    def _repeated(self, document: bytes) -> bytes:
        """Repeat a part as often as there is room, or a few times."""
        first, last = self._span(document)
        part = document[first:last] or b" "
        most = max(1, (SIZE_LIMIT - len(document)) // len(part))
        times = self._rng.choice((1, 4, min(100, most), most))
        return document[:last] + part * times + document[last:]

    def _inserted(self, document: bytes) -> bytes:
        """Put a piece of the language, once or many times, at any place."""
        at = self._rng.randrange(len(document) + 1)
        piece = self._rng.choice(self.entrance.pieces or PIECES)
        most = max(1, (SIZE_LIMIT - len(document)) // len(piece))
        return document[:at] + piece * self._rng.choice((1, 1, min(50, most), most)) + document[at:]

    def _cut(self, document: bytes) -> bytes:
        first, last = self._span(document)
        return document[:first] + document[last:] or document

    def _spliced(self, document: bytes) -> bytes:
        other = self._rng.choice([*self.entrance.seeds, *(each.document for each in self._best)])
        first, last = self._span(other)
        at = self._rng.randrange(len(document) + 1)
        return document[:at] + other[first:last] + document[at:]

    def _digits(self, document: bytes) -> bytes:
        """Replace a digit by a large number."""
        places = [n for n, byte in enumerate(document) if 48 <= byte < 58]
        if not places:
            return document
        at = self._rng.choice(places)
        number = self._rng.choice(
            (b"0", b"1", b"60", b"1000", b"9999", b"1000000", b"9" * 18, b"9" * 400, b"1e308", b"-7")
        )
        return document[:at] + number + document[at + 1 :]


def search(
    documents: int, seed: int, entrances: Sequence[Entrance] = ENTRANCES, seconds: float = float("inf")
) -> list[Climb]:
    """Read so many documents at the entrances in turn, or for so long, and return the searches."""
    rng = random.Random(seed)
    ends = time.monotonic() + seconds
    gc.disable()  # A collection would be counted for the document that is read just then.
    try:
        climbs = [Climb(each, rng) for each in entrances]
        for n in range(documents):
            if time.monotonic() > ends:
                break
            climbs[n % len(climbs)].step()
            if n % 500 == 0:
                gc.collect()
    finally:
        gc.enable()
    return climbs


def main() -> None:
    """Search as the options say, and print what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=10**9)
    options.add_argument("--seconds", type=float, default=3_600.0)
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--only", default="", help="a part of the names of the entrances")
    options.add_argument("--keep", type=Path, help="a directory for the dearest documents")
    said = options.parse_args()
    print(f"seed {said.seed}")
    entrances = [each for each in ENTRANCES if said.only in each.name]
    if said.keep:
        said.keep.mkdir(parents=True, exist_ok=True)
    climbs = search(said.documents, said.seed, entrances, said.seconds)
    for n, each in enumerate(climbs):
        print(f"{each.entrance.name:24} {each.dearest}")
        if said.keep:
            (said.keep / str(n)).write_bytes(each.dearest.document)
    sys.exit(any(each.dearest.ratio > 1 for each in climbs))


if __name__ == "__main__":
    main()
