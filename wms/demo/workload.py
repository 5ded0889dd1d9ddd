"""The demonstration's jobs: one for each package counts the tokens of Python's standard library, and one adds them up.

Every machine that can run this has the sources. The right result is counted in this process.
"""

import asyncio
import heapq
import json
import sys
import sysconfig
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from wms.client import Client, JobDescription, SandboxRef, Submission
from wms.demo import token_count
from wms.demo.token_count import COUNTS, MERGED, Counts
from wms.errors import Rejected

LEAST_UNITS = 220
AT_ONCE = 16
PROGRAM = Path(token_count.__file__)
_OMITTED = frozenset({"test", "tests", "idle_test", "__pycache__"})


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """The files that one counting job reads: a package without its subpackages, a part of a large package, or a module."""

    name: str
    files: tuple[tuple[str, Path], ...]
    """The files, each as its name relative to the library's directory and its path."""
    size: int
    """The total size of the files in bytes."""


def units(root: Path | None = None, least: int = LEAST_UNITS) -> list[Unit]:
    """Divide the standard library, or the sources below `root`, into at least `least` parts. The largest parts are split if there are too few.

    Raise Rejected if there are no sources.
    """
    library = root or Path(sysconfig.get_path("stdlib"))
    found = [_unit(path.stem, library, [path]) for path in sorted(library.glob("*.py"))]
    for top in sorted(library.iterdir()):
        if (top / "__init__.py").is_file() and top.name not in _OMITTED:
            found += _packages(library, top)
    if not found:
        raise Rejected(
            "NO_SOURCES", f"{library} holds no Python sources", "install this Python's library as sources"
        )
    return sorted(_split(found, least), key=lambda unit: unit.name)


def _packages(library: Path, top: Path) -> list[Unit]:
    directories = [top, *(path for path in sorted(top.rglob("*")) if path.is_dir())]
    kept = [path for path in directories if not _OMITTED & set(path.relative_to(library).parts)]
    sources = {path: sorted(path.glob("*.py")) for path in kept}
    return [
        _unit(".".join(path.relative_to(library).parts), library, files)
        for path, files in sources.items()
        if files
    ]


def _unit(name: str, library: Path, files: Sequence[Path]) -> Unit:
    members = tuple((str(path.relative_to(library)), path) for path in files)
    return Unit(name=name, files=members, size=sum(path.stat().st_size for path in files))


def _split(found: list[Unit], least: int) -> list[Unit]:
    heap = [(-unit.size, unit.name, unit) for unit in found if len(unit.files) > 1]
    whole = [unit for unit in found if len(unit.files) == 1]
    heapq.heapify(heap)
    while heap and len(heap) + len(whole) < least:
        _, _, unit = heapq.heappop(heap)
        for part in _halves(unit):
            if len(part.files) > 1:
                heapq.heappush(heap, (-part.size, part.name, part))
            else:
                whole.append(part)
    return whole + [unit for _, _, unit in heap]


def _halves(unit: Unit) -> list[Unit]:
    sums = list(accumulate(path.stat().st_size for _, path in unit.files))
    middle = min(range(1, len(sums)), key=lambda n: abs(2 * sums[n - 1] - unit.size))
    parts = (unit.files[:middle], unit.files[middle:])
    sizes = (sums[middle - 1], unit.size - sums[middle - 1])
    return [
        Unit(name=f"{unit.name}/{n}", files=files, size=size)
        for n, (files, size) in enumerate(zip(parts, sizes, strict=True), 1)
    ]


async def submit(client: Client, work: Sequence[Unit]) -> Submission:
    """Upload the sources, and submit one counting job for each part, in their order."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def describe(unit: Unit) -> JobDescription:
        async with gate:
            ref = await _upload(client, {f"sources/{name}": path for name, path in unit.files})
        return _job(f"count {unit.name}", ("count", unit.name, "sources"), COUNTS, ref)

    return await client.submit(await asyncio.gather(*map(describe, work)))


async def submit_merge(client: Client, outputs: dict[int, Path]) -> Submission:
    """Submit the job that adds up the counts. `outputs` maps each counting job to the directory of its output."""
    ref = await _upload(
        client, {f"counts/{job_id}.json": place / COUNTS for job_id, place in outputs.items()}
    )
    return await client.submit(_job("merge", ("merge", "counts"), MERGED, ref))


async def _upload(client: Client, members: dict[str, Path | bytes]) -> SandboxRef:
    whole: dict[str, Path | bytes] = {PROGRAM.name: PROGRAM}
    return await client.upload(whole | members)


def _job(name: str, arguments: tuple[str, ...], output: str, sandbox: SandboxRef) -> JobDescription:
    return JobDescription(
        name=name,
        # The same Python, since another may tokenize differently. It starts faster without site packages.
        executable=sys.executable,
        arguments=("-I", "-S", PROGRAM.name, *arguments),
        cpu_time=300,
        input_sandbox=(sandbox,),
        output_sandbox=(output,),
    )


async def fetch(
    client: Client, job_ids: Sequence[int], place: Path, tell: Callable[[], None]
) -> dict[int, Path]:
    """Fetch the outputs of these jobs into directories below `place`; return the directory of each job.

    `tell` is called after the output of each job was fetched.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(job_id: int) -> tuple[int, Path]:
        async with gate:
            await client.output(job_id, place / str(job_id))
        tell()
        return job_id, place / str(job_id)

    return dict(await asyncio.gather(*map(one, job_ids)))


def read_merged(place: Path) -> Counts:
    """Return the total counts from `place`, the directory with the output of the merge job."""
    merged: Counts = json.loads((place / MERGED).read_text("utf-8"))
    return merged


def compute(work: Sequence[Unit], given_up: Callable[[], bool] = lambda: False) -> Counts:
    """Return the correct counts, made in this process. Once `given_up` returns true, it stops early and the result is incomplete."""
    return token_count.merge(
        token_count.count(unit.name, [path for _, path in unit.files]) for unit in work if not given_up()
    )


def differences(found: Counts, right: Counts) -> list[str]:
    """Return a sentence for each part of the found result that differs from the right one."""
    return [
        f"{part}: {str(found.get(part))[:200]} instead of {str(right[part])[:200]}"
        for part in right
        if found.get(part) != right[part]
    ]
