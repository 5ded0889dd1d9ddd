"""Payloads in containers of images, by the real Podman or Apptainer: what they see, how they end, and that nothing of them is left."""

import asyncio
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload import apptainer
from services.job_agent.payload.apptainer import Apptainer
from services.job_agent.payload.image_runtime import image_fault, reason_in_container
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.podman import Podman, _name
from services.job_agent.payload.run import Payload
from services.job_agent.payload.runtime_search import find_runtime
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.image_archives import docker_archive, oci_archive
from tests.services.job_agent.payload.processes import alive, new_tag
from tests.waiting import eventually
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store, upload

RUNTIME, FAULT = find_runtime() if shutil.which("busybox") else (None, "no busybox here")
in_containers = pytest.mark.skipif(RUNTIME is None, reason=f"no container runs here: {FAULT}")
IMAGE = "localhost/wms-test-busybox:1"
MIB = 1024 * 1024
TOOLS = (
    "sh",
    "cat",
    "ls",
    "id",
    "env",
    "sleep",
    "true",
    "echo",
    "kill",
    "touch",
    "grep",
    "dd",
    "ip",
    "test",
    "setsid",
)
_ids = itertools.count(1)
New = Callable[..., Payload]


def root_of_image(directory: Path) -> Path:
    """Make a small system of busybox, which is linked statically."""
    for name in ("bin", "proc", "sys", "dev", "tmp", "var/tmp", "etc", "run"):
        (directory / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", directory / "bin" / "busybox")
    for tool in TOOLS:
        (directory / "bin" / tool).symlink_to("busybox")
    return directory


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("image")
    root = root_of_image(place / "root")
    made = imported(root, place) if isinstance(RUNTIME, Podman) else packed(root)
    yield made
    if isinstance(RUNTIME, Podman):
        subprocess.run(["podman", "rmi", "--force", made], check=True, capture_output=True)
    else:
        Path(made).unlink()


def imported(root: Path, place: Path) -> str:
    """Put an image of the directory `root` into Podman's storage; return its name."""
    subprocess.run(["tar", "-C", root, "-cf", place / "image.tar", "."], check=True)
    subprocess.run(
        ["podman", "import", "--quiet", place / "image.tar", IMAGE], check=True, capture_output=True
    )
    return IMAGE


def packed(root: Path) -> str:
    """Make a SIF of the directory `root`, which every user may read; return its path."""
    path = public_place(".sif")
    subprocess.run(["apptainer", "--silent", "build", path, root], check=True, capture_output=True)
    path.chmod(0o644)
    return str(path)


def public_place(ending: str = "") -> Path:
    """Return a path that does not exist, which every user could reach: those of pytest are their owner's alone."""
    above = Path.home() if os.geteuid() else Path("/opt")
    return above / f"wms-test-{os.getpid()}-{next(_ids)}{ending}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def workplace(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workplace]:
    data = tmp_path_factory.mktemp("data")
    (data / "token").write_text("secret")
    async with Workplace(
        root=data / "jobs",
        store=open_store(f"file://{data}/store"),
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=PayloadIsolation(mode="auto", hidden=(str(data),)),
        images=RUNTIME,
    ) as entered:
        yield entered


@pytest_asyncio.fixture(loop_scope="session")
async def new(workplace: Workplace) -> AsyncIterator[New]:
    made: list[Payload] = []

    def make(image: str, *argv: str, limits: PayloadLimits | None = None, **description: object) -> Payload:
        asked = JobDescription(executable=argv[0], arguments=argv[1:], container=image, **description)  # type: ignore[arg-type]
        made.append(Payload(workplace, JobId(next(_ids)), Epoch(1), asked, limits))
        return made[-1]

    yield make
    for payload in made:
        await payload.clean()
    if isinstance(RUNTIME, Podman):
        assert not [each for each in made if _name(each._place.directory) in left()]


def left() -> list[str]:
    """Return the containers of payloads that Podman knows."""
    assert isinstance(RUNTIME, Podman)
    listed = subprocess.run(
        [*RUNTIME._program(), "ps", "--all", "--format={{.Names}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split() if name.startswith("wms-")]


@pytest.mark.slow
@in_containers
async def test_a_payload_has_the_system_of_its_image_and_its_own_directories(
    new: New, image: str, workplace: Workplace
) -> None:
    ref = await upload(workplace.store, {"data": b"input\n"})  # type: ignore[arg-type]
    script = 'cat data; echo "$A" "$1"; echo $HOME | grep -c work; echo out > result; cat result; echo err >&2; exit 7'
    said = '$(id) `id` "b  c'
    payload = new(
        image, "sh", "-c", script, "sh", said,
        input_sandbox=(ref,), output_sandbox=("result",), environment={"A": said},
    )  # fmt: skip
    outcome = await payload.run()
    assert (outcome.reason.code, outcome.exit_code) == (Code.EXIT_CODE, 7)
    assert (outcome.stdout_tail, outcome.stderr_tail) == (f"input\n{said} {said}\n1\nout\n", "err\n")
    assert outcome.output is not None


@pytest.mark.slow
@in_containers
async def test_it_sees_nothing_else_of_the_node(new: New, image: str, workplace: Workplace) -> None:
    other = new(image, "true")
    await other.run()
    data = workplace.root.parent
    script = f"ls {data}; ls {workplace.root}; cat {data}/token; ls {other._place.work}; env; true"
    outcome = await new(image, "sh", "-c", script).run()
    assert outcome.reason.code is Code.DONE
    assert "secret" not in outcome.stdout_tail
    assert [line for line in outcome.stdout_tail.splitlines() if line.startswith("USER=")] == []
    assert outcome.stderr_tail.count("No such file or directory") == 2


@pytest.mark.slow
@in_containers
async def test_it_is_nobody_writes_nothing_and_gains_nothing(new: New, image: str) -> None:
    script = (
        "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status; touch /x /bin/x; touch /tmp/mine && echo tmp"
    )
    outcome = await new(image, "sh", "-c", script).run()
    printed = outcome.stdout_tail.split()
    assert printed[0] == ("65534" if os.geteuid() == 0 else str(os.geteuid()))
    assert printed[1:] == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1", "tmp"]
    assert outcome.stderr_tail.count("Read-only file system") == 2


@pytest.mark.slow
@in_containers
async def test_without_a_network_there_is_none(new: New, image: str) -> None:
    script = "grep -c : /proc/net/dev; grep -v lo: /proc/net/dev | grep -c :"
    alone = await new(image, "sh", "-c", script, network="none").run()
    assert alone.stdout_tail.split() == ["1", "0"]


@pytest.mark.slow
@in_containers
async def test_a_kill_ends_it_within_a_second_and_leaves_nothing(new: New, image: str) -> None:
    tag = new_tag()
    payload = new(image, "sh", "-c", f"trap '' TERM; setsid sleep {tag} & sleep {tag} & sleep {tag}")
    running = asyncio.create_task(payload.run())
    await eventually(lambda: len(alive(tag)) >= 3, within=30)
    began = time.monotonic()
    payload.kill(Reason(Code.KILLED_BY_USER, "killed"), grace=0.5)
    outcome = await running
    assert time.monotonic() - began < 1.5
    assert outcome.reason.code is Code.KILLED_BY_USER
    assert not alive(tag)


@pytest.mark.slow
@in_containers
async def test_a_daemon_ends_with_its_payload(new: New, image: str) -> None:
    tag = new_tag()
    outcome = await new(image, "sh", "-c", f"setsid sleep {tag} > /dev/null 2>&1 &").run()
    assert outcome.reason.code is Code.DONE
    assert not alive(tag)


@pytest.mark.slow
@in_containers
async def test_its_limits_are_enforced_on_what_is_in_the_container(new: New, image: str) -> None:
    fits = await new(image, "sleep", "1", limits=PayloadLimits(memory_bytes=16 * MIB)).run()
    assert fits.reason.code is Code.DONE
    assert 0 < fits.usage.max_rss_bytes < 16 * MIB
    eats = "dd if=/dev/zero of=/dev/null bs=200M count=50"
    over = await new(image, "sh", "-c", eats, limits=PayloadLimits(memory_bytes=64 * MIB)).run()
    assert over.reason.code is Code.MEMORY_LIMIT
    slow = await new(image, "sleep", "60", limits=PayloadLimits(wall_seconds=2.0)).run()
    assert slow.reason.code is Code.WALL_LIMIT


@pytest.mark.slow
@in_containers
async def test_what_cannot_be_started_is_told(new: New, image: str) -> None:
    outcome = await new(image, "no-such-program").run()
    assert outcome.reason.code is Code.NOT_STARTED
    assert "program" in outcome.reason.text
    assert "FATAL" not in outcome.reason.text
    missing = await new("localhost/none-such:1", "true").run()
    assert missing.reason.code is Code.NOT_STARTED
    outcome = await new(image, "true", environment={"A": "two\nlines"}).run()
    assert (outcome.reason.code, "BAD_VARIABLE" in outcome.reason.text) == (Code.NOT_STARTED, True)


@pytest.mark.slow
@in_containers
async def test_a_local_directory_is_an_image_unless_it_shows_what_is_hidden(
    new: New, workplace: Workplace, tmp_path: Path
) -> None:
    place = public_place()
    try:
        root_of_image(place)
        outcome = await new(str(place), "echo", "here").run()
        assert (outcome.reason.code, outcome.stdout_tail) == (Code.DONE, "here\n")
    finally:
        shutil.rmtree(place)
    for path in (workplace.root, workplace.root.parents[1], tmp_path / "none"):
        outcome = await new(str(path), "true").run()
        assert (outcome.reason.code, "NO_IMAGE" in outcome.reason.text) == (Code.NOT_STARTED, True)


@pytest.mark.slow
@in_containers
@pytest.mark.parametrize("save", [docker_archive, oci_archive])
async def test_an_archive_is_an_image(new: New, tmp_path: Path, save: Callable[[Path, Path], Path]) -> None:
    place = public_place(".tar")
    try:
        save(root_of_image(tmp_path / "root"), place).chmod(0o644)
        outcome = await new(str(place), "echo", "here").run()
        assert (outcome.reason.code, outcome.stdout_tail) == (Code.DONE, "here\n"), outcome.reason.text
    finally:
        place.unlink()


@pytest.mark.slow
@in_containers
@pytest.mark.skipif(not isinstance(RUNTIME, Apptainer), reason="no Apptainer here")
async def test_where_users_may_not_mount_by_fuse_an_image_is_unpacked(
    new: New, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apptainer, "FUSE", "/none-such")
    payload = new(image, "sh", "-c", "echo here; grep -c fuse /proc/mounts")
    outcome = await payload.run()
    assert outcome.stdout_tail == "here\n0\n"
    await payload.clean()
    assert not payload._place.directory.exists()


@pytest.mark.slow
@in_containers
@pytest.mark.skipif(not isinstance(RUNTIME, Apptainer), reason="no Apptainer here")
async def test_shared_memory_of_apptainer_counts_as_disk(new: New, image: str) -> None:
    script = "echo x > /dev/shm/part; cat /tmp/part; dd if=/dev/zero of=/dev/shm/x bs=1M count=40; sleep 60"
    outcome = await new(image, "sh", "-c", script, limits=PayloadLimits(disk_bytes=16 * MIB)).run()
    assert (outcome.reason.code, outcome.stdout_tail) == (Code.DISK_LIMIT, "x\n")


async def test_a_node_without_a_runtime_gives_the_job_back(workplace: Workplace) -> None:
    async with Workplace(
        root=workplace.root / "none", store=workplace.store, site=SiteName("S"), pilot_id=PilotId("q")
    ) as without:
        asked = JobDescription(executable="true", container="a")
        outcome = await Payload(without, JobId(1), Epoch(1), asked).run()
    assert outcome.reason.code is Code.AGENT_ERROR


def test_a_program_that_failed_is_told_from_a_payload_that_did() -> None:
    own, fault = Reason(Code.EXIT_CODE, "ended with exit code 127"), "Error: no such image"
    assert image_fault(f"pulling\n{fault}\n") == "no such image"
    assert image_fault("FATAL:   no such image\n") == "no such image"
    untold = 'Error: container create failed (no logs from conmon): conmon bytes "": readObjectStart'
    assert "look whether the image has the program" in image_fault(untold)
    assert reason_in_container(own, 127, fault).code is Code.NOT_STARTED
    assert reason_in_container(own, 1, fault) == own
    assert reason_in_container(own, 127, "sh: x: not found") == own
