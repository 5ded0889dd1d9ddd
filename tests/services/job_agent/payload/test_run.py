"""Payloads with real processes: how they start, what they find, what is kept, what is said of them."""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.job_agent.payload.environment import Allotment
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.outcome import PayloadOutcome, result_of
from services.job_agent.payload.output_capture import Chunk
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import ISOLATIONS
from tests.waiting import eventually
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.transfer import SandboxStore, download, open_store, upload

MIB = 1024 * 1024
_ids = itertools.count(1)
New = Callable[..., Payload]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SandboxStore:
    return open_store(f"file://{tmp_path_factory.mktemp('store')}")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, store: SandboxStore
) -> AsyncIterator[Workplace]:
    root = tmp_path_factory.mktemp("agent") / "run"
    async with Workplace(
        root=root,
        store=store,
        site=SiteName("SITE"),
        pilot_id=PilotId("pilot-1"),
        isolation=request.param,
    ) as entered:
        yield entered


@pytest.fixture
def new(workplace: Workplace) -> New:
    def make(*argv: str, limits: PayloadLimits | None = None, **description: object) -> Payload:
        asked = JobDescription(executable=argv[0], arguments=argv[1:], **description)  # type: ignore[arg-type]
        return Payload(workplace, JobId(next(_ids)), Epoch(1), asked, limits)

    return make


async def outputs(store: SandboxStore, outcome: PayloadOutcome, dest: Path) -> dict[str, bytes]:
    assert outcome.output is not None
    dest.mkdir(exist_ok=True)
    await download(store, outcome.output.sha256, dest)
    return {str(p.relative_to(dest)): p.read_bytes() for p in dest.rglob("*") if p.is_file()}


async def test_a_program_runs_and_what_it_printed_and_wrote_is_kept(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    ref = await upload(
        store, {"in/data": b"input\n", "run.sh": b"#!/bin/sh\ncat in/data; echo err >&2; echo 1 > a.out"}
    )
    payload = new("run.sh", input_sandbox=(ref,), output_sandbox=("*.out", "no*"))
    outcome = await payload.run()
    assert (outcome.reason.code, outcome.exit_code, outcome.signal) == (Code.DONE, 0, None)
    assert outcome.unmatched == ("no*",)
    assert (outcome.stdout_tail, outcome.stderr_tail) == ("input\n", "err\n")
    kept = await outputs(store, outcome, tmp_path / "got")
    assert kept == {"stdout.txt": b"input\n", "stderr.txt": b"err\n", "a.out": b"1\n"}
    assert outcome.usage.wall_seconds > 0
    assert outcome.usage.max_rss_bytes > 0
    assert outcome.usage.disk_bytes > 0
    directory = payload._place.directory
    assert directory.stat().st_mode & 0o777 == 0o700
    await payload.clean()
    assert not directory.exists()


async def test_inputs_with_a_directory_lie_beside_each_other(new: New, store: SandboxStore) -> None:
    first, second = [await upload(store, {"stdout.txt": each}) for each in (b"one\n", b"two\n")]
    refs = [
        SandboxRef(sha256=each.sha256, size=each.size, directory=name)
        for each, name in ((first, "17"), (second, "18"))
    ]
    outcome = await new("sh", "-c", "cat 17/stdout.txt 18/stdout.txt", input_sandbox=tuple(refs)).run()
    assert (outcome.reason.code, outcome.stdout_tail) == (Code.DONE, "one\ntwo\n")
    other = await upload(store, {"17": b"no directory"})
    outcome = await new("true", input_sandbox=(other, refs[0])).run()
    assert (outcome.reason.code, outcome.reason.text) == (
        Code.INPUT_FAILED,
        "an input has a file of the name 17 (SANDBOX_UNSAFE)",
    )


async def test_a_silent_program_still_has_its_two_outputs(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    outcome = await new("true").run()
    assert await outputs(store, outcome, tmp_path / "got") == {"stdout.txt": b"", "stderr.txt": b""}


async def test_exit_codes_and_signals_are_told(new: New) -> None:
    outcome = await new("sh", "-c", "exit 3").run()
    assert (outcome.reason.code, outcome.exit_code, outcome.reason.text) == (
        Code.EXIT_CODE,
        3,
        "ended with exit code 3",
    )
    outcome = await new("sh", "-c", "exit 3", success_exit_codes=(0, 3)).run()
    assert outcome.reason.code is Code.DONE
    outcome = await new("sh", "-c", "kill -SEGV $$").run()
    assert (outcome.reason.code, outcome.exit_code, outcome.signal) == (Code.SIGNAL, None, 11)
    assert "SIGSEGV" in outcome.reason.text


@pytest.mark.parametrize(
    ("executable", "content", "text"),
    [
        ("no-such-program", None, "no such program"),
        ("./no-such-program", None, "no such program"),
        ("/no/such/program", None, "no such program"),
        ("/tmp/no-such-program", None, "isolated jobs have a /tmp of their own"),
        ("orphan.sh", b"#!/no/such/interpreter\n", "the interpreter it names is not there"),
        ("prose.txt", b"just text\n", "no program of this machine"),
        ("/etc/passwd", None, "not executable"),
        ("/tmp", None, "not executable"),
    ],
)
async def test_why_a_program_cannot_be_started_is_said(
    new: New, store: SandboxStore, executable: str, content: bytes | None, text: str
) -> None:
    ref = await upload(store, {executable: content}) if content else None
    outcome = await new(executable, input_sandbox=(ref,) if ref else ()).run()
    assert outcome.reason.code is Code.NOT_STARTED
    assert text in outcome.reason.text
    assert executable.removeprefix("./") in outcome.reason.text
    assert (outcome.exit_code, outcome.signal) == (None, None)


async def test_arguments_over_the_kernels_bound_are_a_reason(new: New) -> None:
    outcome = await new("true", "x" * 3 * MIB).run()
    assert outcome.reason.code is Code.NOT_STARTED
    assert "too large" in outcome.reason.text


async def test_the_environment_is_the_users_and_ours_and_holds_no_secret(
    new: New, monkeypatch: pytest.MonkeyPatch, workplace: Workplace
) -> None:
    monkeypatch.setenv("WMS_TOKEN", "secret-token")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-key")
    payload = new(
        "env", "-0", environment={"COLOUR": "red\nblue", "PATH": "/usr/bin:/bin", "WMS_JOB_ID": "999"}
    )
    outcome = await payload.run()
    seen = dict(line.split("=", 1) for line in outcome.stdout_tail.split("\0") if line)
    assert "secret" not in outcome.stdout_tail
    assert seen["COLOUR"] == "red\nblue"
    assert seen["PATH"] == "/usr/bin:/bin"
    assert seen["WMS_JOB_ID"] == str(payload.job_id)
    assert (seen["WMS_EPOCH"], seen["WMS_SITE"], seen["WMS_PILOT"]) == ("1", "SITE", "pilot-1")
    assert seen["HOME"] == seen["WMS_WORK"]
    assert seen["TMPDIR"] == seen["WMS_SCRATCH"] != seen["WMS_WORK"]
    assert {n for n in seen if n.startswith("WMS_")} == {
        "WMS_JOB_ID", "WMS_EPOCH", "WMS_SITE", "WMS_PILOT", "WMS_PROCESSORS", "WMS_GPUS", "WMS_WORK", "WMS_SCRATCH"
    }  # fmt: skip
    # Payloads can read the environment of any process of their user: the shepherd has none.
    assert b"secret" not in Path(f"/proc/{workplace.processes.shepherd_pid}/environ").read_bytes()


async def test_a_payload_is_bound_to_its_processors_and_sees_its_gpus_alone(workplace: Workplace) -> None:
    mine = sorted(os.sched_getaffinity(0))
    code = "import os; print(sorted(os.sched_getaffinity(0)), os.environ['CUDA_VISIBLE_DEVICES'])"
    asked = JobDescription(executable=sys.executable, arguments=("-c", code))

    async def printed(**more: Any) -> str:
        payload = Payload(workplace, JobId(next(_ids)), Epoch(1), asked, allotted=Allotment(**more))
        return (await payload.run()).stdout_tail

    assert await printed(cpus=(mine[-1],), gpus=("GPU-a", "1")) == f"[{mine[-1]}] GPU-a,1\n"
    assert await printed() == f"{mine} \n", "what starts the next one is not bound"
    assert await printed(cpus=(4_000,)) == f"{mine} \n", "a processor that was taken away binds nothing"


async def test_it_starts_clean(new: New) -> None:
    code = "import os,resource,signal; print(os.getsid(0)==os.getpid(), os.listdir('.'), sorted(os.listdir('/proc/self/fd')),"
    code += "oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_CORE)[1], signal.pthread_sigmask(0, ()), os.getcwd()==os.environ['PWD'],"
    code += "hex(int(open('/proc/self/status').read().split('SigIgn:')[1].split()[0], 16) & ~(3 << 31)))"
    outcome = await new(sys.executable, "-c", code).run()
    # Python itself ignores SIGPIPE and SIGXFSZ, glibc's posix_spawn its own two, 32 and 33; `3` is the directory being listed.
    assert outcome.stdout_tail.strip() == "True [] ['0', '1', '2', '3'] 0o77 0 set() True 0x1001000"


async def test_an_input_that_cannot_be_had_is_a_reason(new: New, store: SandboxStore, tmp_path: Path) -> None:
    torn = await store.put(b"not an archive")
    outcome = await new("true", input_sandbox=(torn,)).run()
    assert outcome.reason.code is Code.INPUT_FAILED
    assert "not a tar.gz" in outcome.reason.text
    outcome = await new("true", input_sandbox=(SandboxRef(sha256="0" * 64, size=1),)).run()
    assert outcome.reason.code is Code.INPUT_FAILED
    assert "no sandbox 000" in outcome.reason.text


async def test_outputs_that_lead_out_are_told_and_left(new: New, store: SandboxStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    outcome = await new(
        "sh", "-c", f"ln -s {secret} out; echo 1 > fine", output_sandbox=("out", "fine")
    ).run()
    assert outcome.reason.code is Code.DONE
    assert outcome.unmatched == ("out",)
    assert "leads out" in outcome.refused[0]
    assert set(await outputs(store, outcome, tmp_path / "got")) == {"stdout.txt", "stderr.txt", "fine"}


async def test_too_large_an_output_sandbox_fails_and_keeps_what_fits(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    script = "echo hello; head -c 3000000 /dev/urandom > big; echo 1 > summary.txt; mkdir -p d/empty"
    outcome = await new(
        "sh", "-c", script, output_sandbox=("big", "*.txt", "d"), limits=PayloadLimits(output_bytes=MIB)
    ).run()
    assert outcome.reason.code is Code.OUTPUT_FAILED
    said = "the output sandbox would hold 2.9 MiB of the 1.0 MiB allowed, in 3 files, 2 of them kept"
    assert outcome.reason.text == said
    assert outcome.refused == ("big: 3,000,000 bytes, for which there is no room",)
    kept = await outputs(store, outcome, tmp_path / "got")
    assert kept == {"stdout.txt": b"hello\n", "stderr.txt": b"", "summary.txt": b"1\n"}
    assert (tmp_path / "got" / "d" / "empty").is_dir()


async def test_inputs_and_outputs_keep_their_times(new: New, store: SandboxStore, tmp_path: Path) -> None:
    times = {"zmain.c": 1_700_000_000_250_000_000, "aprog": 1_700_000_000_750_000_000}
    for name, when_ns in times.items():
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, ns=(when_ns, when_ns))
    ref = await upload(store, {name: tmp_path / name for name in times})
    script = "[ aprog -nt zmain.c ] && touch -d @1600000000.5 made"
    outcome = await new("sh", "-c", script, input_sandbox=(ref,), output_sandbox=("*",)).run()
    assert outcome.reason.code is Code.DONE
    await outputs(store, outcome, tmp_path / "got")
    found = {name: (tmp_path / "got" / name).stat().st_mtime_ns for name in (*times, "made")}
    assert found == times | {"made": 1_600_000_000_500_000_000}


async def test_a_bad_pattern_fails_and_keeps_what_was_printed(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    outcome = await new("echo", "hello", output_sandbox=("../x",)).run()
    assert outcome.reason.code is Code.OUTPUT_FAILED
    assert (await outputs(store, outcome, tmp_path / "got"))["stdout.txt"] == b"hello\n"


async def test_printing_without_end_is_bounded_and_not_punished(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    lines = 500_000
    payload = new("seq", "-f", "%09.0f", str(lines), stdout_limit=MIB)
    outcome = await payload.run()
    assert outcome.reason.code is Code.DONE
    files = [
        p
        for p in payload._place.directory.iterdir()
        if p.name.startswith("stdout.txt.") and p.suffix != ".whole"
    ]
    assert sum(p.stat().st_size for p in files) <= MIB
    kept = (await outputs(store, outcome, tmp_path / "got"))["stdout.txt"]
    assert len(kept) < MIB + 100
    assert kept.startswith(b"000000001\n")
    assert kept.endswith(b"%09d\n" % lines)
    left_out = lines * 10 - MIB
    assert b"\n[... %d bytes left out ...]\n" % left_out in kept
    chunk = await payload.tail("stdout", 20)
    assert (chunk.data, chunk.total) == (b"%09d\n%09d\n" % (lines - 1, lines), lines * 10)
    # Asked for what was not kept, it goes on with what was.
    chunk = await payload.tail("stdout", 20, offset=MIB)
    assert MIB < chunk.offset <= chunk.total - MIB // 2
    assert len(chunk.data) == 20


async def test_the_last_lines_are_seen_while_it_runs(new: New) -> None:
    payload = new("sh", "-c", "mkfifo fifo; echo one; exec < fifo; read line; echo two; read line")
    running = asyncio.create_task(payload.run())
    chunk = await _tail_until(payload, b"one\n")
    assert (chunk.offset, chunk.total) == (0, 4)
    # Open for both, it waits for no reader, and the payload never finds the end of it.
    fifo = os.open(payload._place.work / "fifo", os.O_RDWR)
    try:
        os.write(fifo, b"go\n")
        chunk = await _tail_until(payload, b"two\n", offset=chunk.next_offset)
        assert (chunk.offset, chunk.next_offset) == (4, 8)
        os.write(fifo, b"go\n")
        assert (await running).stdout_tail == "one\ntwo\n"
    finally:
        os.close(fifo)


async def _tail_until(payload: Payload, data: bytes, offset: int | None = None) -> Chunk:
    async def seen() -> Chunk | None:
        chunk = await payload.tail("stdout", 100, offset)
        return chunk if chunk.data == data else None

    chunk = await eventually(seen)
    assert chunk is not None
    return chunk


async def test_closing_its_outputs_early_is_the_payloads_affair(new: New) -> None:
    outcome = await new("sh", "-c", "echo 1; exec >&- 2>&-; sleep 0.1; exit 4").run()
    assert (outcome.exit_code, outcome.stdout_tail) == (4, "1\n")


async def test_hundreds_at_once(new: New) -> None:
    payloads = [new("sh", "-c", f"sleep 0.5; echo {n}") for n in range(200)]
    results = await asyncio.gather(*(payload.run() for payload in payloads))
    assert [outcome.stdout_tail for outcome in results] == [f"{n}\n" for n in range(200)]


async def test_a_directory_made_unreadable_is_removed_all_the_same(new: New) -> None:
    payload = new("sh", "-c", "mkdir -p a/b && touch a/b/c && chmod 0 a/b a")
    await payload.run()
    await payload.clean()
    assert not payload._place.directory.exists()


async def test_leftovers_of_a_dead_agent_are_no_inputs(new: New) -> None:
    payload = new("ls")
    stale = payload._place.work
    stale.mkdir(parents=True)
    (stale / "stale").touch()
    assert (await payload.run()).stdout_tail == ""


async def test_what_no_pattern_chose_is_named(new: New, store: SandboxStore) -> None:
    ref = await upload(store, {"in.dat": b"1", "changed.dat": b"1"})
    script = "echo 2 > result.txt; mkdir -p d; echo 3 > d/more; echo 4 > kept; echo 5 >> changed.dat"
    payload = new("sh", "-c", script, input_sandbox=(ref,), output_sandbox=("kept",))
    outcome = await payload.run()
    assert (sorted(outcome.left.names), outcome.left.count) == (["changed.dat", "d/more", "result.txt"], 3)
    text = result_of(AttemptId(JobId(1), Epoch(1)), outcome).text
    assert text.startswith("3 files left behind: ")
    assert text.endswith("(--output '**' keeps them all)")
    outcome = await new("sh", "-c", script, output_sandbox=("**",)).run()
    assert (outcome.left.count, result_of(AttemptId(JobId(1), Epoch(1)), outcome).text) == (0, "")


async def test_a_file_with_the_name_of_what_was_printed_is_told(
    new: New, store: SandboxStore, tmp_path: Path
) -> None:
    script = "echo printed; echo mine > stdout.txt; echo 1 > a"
    outcome = await new("sh", "-c", script, output_sandbox=("*",)).run()
    assert outcome.refused == ("stdout.txt: the name of what was printed",)
    assert (await outputs(store, outcome, tmp_path / "got"))["stdout.txt"] == b"printed\n"


async def test_very_many_files_left_behind_are_counted_and_few_are_named(new: New) -> None:
    outcome = await new("sh", "-c", "seq 300 | xargs touch").run()
    assert (len(outcome.left.names), outcome.left.count) == (20, 300)


async def test_python_prints_at_once_unless_its_user_wants_otherwise(new: New) -> None:
    assert (await new("sh", "-c", "echo $PYTHONUNBUFFERED").run()).stdout_tail == "1\n"
    outcome = await new("sh", "-c", "echo $PYTHONUNBUFFERED", environment={"PYTHONUNBUFFERED": ""}).run()
    assert outcome.stdout_tail == "\n"
