"""The jars of a program are fetched once, by whoever is first; what this machine lacks is named. Maven and Java are scripts here."""

import asyncio
from pathlib import Path

import pytest

from wms.embedded.java_program import JavaProgram, java_command
from wms.errors import Rejected, Unavailable

NEW_JAVA, OLD_JAVA = "echo 'openjdk version \"21.0.2\"' >&2", "echo 'openjdk version \"11.0.2\"' >&2"
FETCH = 'for each; do case $each in -DoutputDirectory=*) echo jar > "${each#*=}/a.jar";; esac; done'


class Machine:
    """A machine that has the programs that were put there, and a cache."""

    def __init__(self, root: Path) -> None:
        self.bin, self.cache = root / "bin", root / "cache" / "wms"
        self.bin.mkdir()
        self.pom = root / "pom.xml"
        self.pom.write_text("<project><properties><it.version>1.2</it.version></properties></project>")
        self.program = JavaProgram("The Program", self.pom, "it.version")

    def put(self, name: str, script: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


@pytest.fixture
def machine(tmp_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_dir)
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("XDG_CACHE_HOME", str(made.cache.parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return made


def test_what_the_machine_lacks_is_named(machine: Machine) -> None:
    assert machine.program.missing() == "Java 17 or later (found none)"
    machine.put("java", OLD_JAVA)
    assert machine.program.missing() == "Java 17 or later (found 11)"
    machine.put("java", NEW_JAVA)
    lack = machine.program.missing()
    assert lack == f"Maven (mvn), to fetch the jars of The Program into {machine.cache}/the-program-1.2"
    (machine.cache / "the-program-1.2").mkdir(parents=True)
    assert machine.program.missing() is None


async def test_a_fetch_without_java_is_refused(machine: Machine) -> None:
    with pytest.raises(Rejected, match="Java 17 or later") as refused:
        await machine.program.fetch()
    assert refused.value.code == "NO_THE_PROGRAM"


async def test_jars_are_fetched_once_however_many_ask(machine: Machine) -> None:
    machine.put("java", NEW_JAVA)
    machine.put("mvn", FETCH)
    places = await asyncio.gather(*(machine.program.fetch() for _ in range(3)))
    assert set(places) == {machine.cache / "the-program-1.2"}
    assert [each.name for each in places[0].iterdir()] == ["a.jar"]
    machine.put("mvn", "exit 1")
    assert await machine.program.fetch() == places[0]
    assert list(machine.cache.iterdir()) == [places[0]]


@pytest.mark.parametrize("script", ["echo no such artifact; exit 1", "echo no such artifact"])
async def test_a_fetch_that_brings_nothing_says_what_maven_said(machine: Machine, script: str) -> None:
    machine.put("java", NEW_JAVA)
    machine.put("mvn", script)
    with pytest.raises(Unavailable, match="no such artifact"):
        await machine.program.fetch()
    assert not (machine.cache / "the-program-1.2").exists()


def test_the_command_prefers_the_java_of_java_home(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = java_command(Path("/jars"), "a.Main", "--x", heap_mib=64, log_settings="log=/l")
    assert argv[0] == "java"
    assert argv[-4:] == ["-cp", "/jars/*", "a.Main", "--x"]
    assert {"-Xmx64m", "-Dlog=/l"} < set(argv)
    machine.put("java", NEW_JAVA)
    monkeypatch.setenv("JAVA_HOME", str(machine.bin.parent))
    argv = java_command(Path("/jars"), "a.Main", heap_mib=64, log_settings="log=/l")
    assert argv[0] == str(machine.bin / "java")
