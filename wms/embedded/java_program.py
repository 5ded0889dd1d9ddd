"""Java programs that Maven publishes: their jars, fetched once into the user's cache, and the command that runs them."""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wms.embedded.process import Child
from wms.errors import Rejected, Unavailable

JAVA = 17
FETCH_WITHIN = 600.0


@dataclass(frozen=True)
class JavaProgram:
    """A program whose jars are the dependencies of the Maven project in the file `pom`.

    The project's property `version_property` is the program's version. `title` names the program in messages.
    """

    title: str
    pom: Path
    version_property: str

    @property
    def version(self) -> str:
        """The program's version, such as "4.1.0"."""
        found = re.search(rf"<{re.escape(self.version_property)}>(.+?)</", self.pom.read_text("utf-8"))
        assert found is not None, self.pom
        return found[1]

    def missing(self) -> str | None:
        """Return what this machine lacks to run the program, such as "Java 17 or later (found 11)"; None if it has Java and Maven or the jars."""
        if (version := _java_version()) < JAVA:
            return f"Java {JAVA} or later (found {version or 'none'})"
        if not self._cached.is_dir() and shutil.which("mvn") is None:
            return f"Maven (mvn), to fetch the jars of {self.title} into {self._cached}"
        return None

    async def fetch(self) -> Path:
        """Return the directory with the program's jars in the user's cache. The first call lets Maven download them.

        Raise Rejected if Java or Maven is missing, and Unavailable if the download fails or takes over 10 minutes.
        """
        if lack := self.missing():
            code = f"NO_{self._name.upper().replace('-', '_')}"
            raise Rejected(code, f"{self.title} cannot run here: there is no {lack}", f"install {lack}")
        place = self._cached
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
            try:
                await self._copy_jars(fresh)
                _move_whole(fresh, place)
            finally:
                await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
        return place

    async def _copy_jars(self, target: Path) -> None:
        log_path = target.with_suffix(".log")
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        child = await Child.start(["mvn", "-B", "-q", "-f", str(self.pom), *goal], log_path=log_path)
        try:
            async with asyncio.timeout(FETCH_WITHIN):
                code = await child.wait()
        except TimeoutError:
            code = await child.stop(grace=1.0)
        if code != 0 or not _has_jars(target):
            raise Unavailable(
                f"Maven could not fetch the jars of {self.title}; the end of {log_path}: {child.log_tail()}"
            )
        log_path.unlink(missing_ok=True)

    @property
    def _name(self) -> str:
        return self.title.lower().replace(" ", "-")

    @property
    def _cached(self) -> Path:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(root) / "wms" / f"{self._name}-{self.version}"


def java_command(jars: Path, main: str, *arguments: str, heap_mib: int, log_settings: str) -> list[str]:
    """Return the command that runs the class `main` of the jars in a directory, with a heap of at most `heap_mib` MiB.

    `log_settings` is the Java property that names the file of the log's settings, as NAME=VALUE.
    """
    options = [
        f"-Xmx{heap_mib}m",
        "-Xms64m",
        # A short start matters more here than peak speed.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        f"-D{log_settings}",
    ]
    return [_java_binary(), *options, "-cp", f"{jars}/*", main, *arguments]


def _has_jars(directory: Path) -> bool:
    return any(directory.glob("*.jar"))


def _move_whole(fresh: Path, place: Path) -> None:
    with contextlib.suppress(OSError):  # another process may have been first; its jars are the same
        fresh.rename(place)


def _java_binary() -> str:
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "java" if home else None
    return str(own) if own is not None and own.exists() else "java"


def _java_version() -> int:
    """Return the major version of the Java on this machine; 0 if there is none."""
    try:
        answer = subprocess.run(
            [_java_binary(), "-version"], capture_output=True, check=True, text=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0
