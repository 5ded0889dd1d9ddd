"""Files by URL that ARC moves for jobs that are sent directly: which URLs it is given, and what the job checks."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from wms.dispatch.arc_staging import (
    LEAVING,
    STAGED,
    conclusion,
    input_relations,
    output_relations,
    preparation,
    staging_fault,
    staging_of,
)
from wms.dispatch.carried_files import BACK, THERE, carried_script, pack_inputs, unpack_outputs
from wms.dispatch.direct import ENDED, DirectPayload, StagedFiles, StagedInput, StagedOutput, end_in

URL = "https://store.example.org:8443/data/in.root"


@pytest.mark.parametrize(
    "url",
    [URL, "http://[::1]:80/a", "https://store.example.org/a?X-Amz-Date=2026&Sig=a%2Fb", "root://s//data/a"],
)
def test_plain_urls_are_passed_on(url: str) -> None:
    assert staging_fault("a/b.root", url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "https://inner;x=y.example.org/a",
        "https://user@inner/a",
        "https://host/a:checksumtype=md5:checksumvalue=0",
        "https://host/a|b",
        'https://host/a")(executable="b',
        "https://host/$(HOME)",
        "https://host/a b",
        "https://host/a\\@inner",
        "file:///etc/passwd",
        "s3://bucket/key",
        "lfn:/data/a",
    ],
)
def test_what_arc_reads_otherwise_than_others_is_refused(url: str) -> None:
    assert "plain URLs" in staging_fault("a", url)


@pytest.mark.parametrize("name", ["a b", "@list", "d/", "a\\b", 'a"b', "-", "a//b", "$HOME"])
def test_names_that_mean_something_to_arc_or_a_shell_are_refused(name: str) -> None:
    refused = "signs" in staging_fault(name, URL)
    assert refused is (name != "-")


def test_a_checksum_that_nobody_verifies_is_refused() -> None:
    assert "adler32" in staging_fault("a", URL, "adler32:00000001")
    assert staging_fault("a", URL, f"sha256:{'0' * 64}") == staging_fault("a", URL, f"md5:{'0' * 32}") == ""


def test_inputs_are_the_jobs_own_and_outputs_go_where_they_shall() -> None:
    files = StagedFiles(
        inputs=(StagedInput(name="in", url=URL),), outputs=(StagedOutput(name="d/out", url="http://h/o"),)
    )
    assert input_relations(files) == '("work/in" "https://store.example.org:8443;cache=copy/data/in.root")'
    assert output_relations(files) == '("work/d/out" "http://h/o")'


def test_a_job_without_files_by_url_has_nothing_to_do_for_them() -> None:
    assert preparation(StagedFiles()) == conclusion(StagedFiles()) == ""


@pytest.mark.parametrize(
    ("reason", "staging"),
    [
        ("Failed in data staging: Failed checking source replica http://h/no: Not Found", "failed"),
        ("exit code 70: LRMS error: (70) Job failed: FILE_CORRUPT: in has another md5 checksum", "corrupt"),
        ("exit code 70", ""),
    ],
)
def test_the_words_of_arc_on_staging_are_understood(reason: str, staging: str) -> None:
    assert staging_of(reason) == staging


class Place:
    """A job's directory at an ARC element, as it is once the inputs have come."""

    def __init__(self, root: Path) -> None:
        self.work, self.back, self.root = root / "job" / "work", root / "back", root / "job"
        self.work.mkdir(parents=True)
        (root / "inputs").mkdir()
        pack_inputs(root / "inputs", self.root / THERE)
        self._inputs = root / "inputs"

    def run(self, program: str, files: StagedFiles) -> subprocess.CompletedProcess[str]:
        payload = DirectPayload(
            argv=("sh", "-c", program),
            environment={"PATH": "/usr/bin:/bin"},
            inputs=self._inputs,
            staged=files,
        )
        script = carried_script(
            "p", payload, preparation=preparation(files), conclusion=conclusion(files), left_out=STAGED
        )
        done = subprocess.run(
            ["/bin/sh", "-c", script], cwd=self.root, timeout=60, check=False, text=True, capture_output=True
        )
        if (self.root / BACK).stat().st_size:
            unpack_outputs(self.root / BACK, self.back)
        return done


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_good_inputs_are_used_and_stay_out_of_what_is_fetched_back(place: Place) -> None:
    (place.work / "tool").write_text("#!/bin/sh\ncat in; echo made > out; echo kept > other\n")
    (place.work / "in").write_text("given")
    checksum = f"sha256:{hashlib.sha256(b'given').hexdigest().upper()}"
    files = StagedFiles(
        inputs=(
            StagedInput(name="tool", url=URL, executable=True),
            StagedInput(name="in", url=URL, size=5, checksum=checksum),
        ),
        outputs=(StagedOutput(name="out", url="http://h/o"),),
    )
    place.run("./tool", files)
    assert end_in(place.back).exit_code == 0
    assert (place.back / "stdout.txt").read_text() == "given"
    assert (place.work / "out").read_text() == "made\n", "there, for ARC to send"
    assert {each.name for each in (place.back / "work").iterdir()} == {"other"}


@pytest.mark.parametrize(
    "wrong", [{"size": 6}, {"checksum": f"md5:{'0' * 32}"}, {"checksum": f"sha256:{'0' * 64}"}]
)
def test_a_job_whose_input_is_not_what_it_must_be_does_not_begin(
    place: Place, wrong: dict[str, object]
) -> None:
    (place.work / "in").write_text("given")
    done = place.run("touch began", StagedFiles(inputs=(StagedInput(name="in", url=URL, **wrong),)))  # type: ignore[arg-type] # by name
    assert done.returncode == 70
    assert staging_of(done.stderr) == "corrupt"
    assert not (place.work / "began").exists()


@pytest.mark.parametrize("code", [0, 1])
def test_an_output_of_the_sandbox_is_fetched_back_too(place: Place, code: int) -> None:
    outputs = (
        StagedOutput(name="out", url="http://h/o", kept=True),
        StagedOutput(name="far", url="http://h/f"),
    )
    place.run(
        f"echo made > out; echo sent > far; exit {code}",
        StagedFiles(outputs=outputs, success_exit_codes=(0,)),
    )
    assert {each.name for each in (place.back / "work").iterdir()} == {"out"}
    assert (place.work / "out").exists() is (code == 0), "there, for ARC to send"


@pytest.mark.parametrize(("program", "sent"), [("exit 0", True), ("exit 3", True), ("exit 1", False)])
def test_outputs_are_sent_only_of_jobs_that_ended_well(place: Place, program: str, *, sent: bool) -> None:
    files = StagedFiles(outputs=(StagedOutput(name="d/out", url="http://h/o"),), success_exit_codes=(0, 3))
    place.run(f"mkdir d; echo made > d/out; {program}", files)
    assert (place.work / "d" / "out").exists() is sent
    assert (place.root / LEAVING).read_text() == "work/d/out\n"


def test_nothing_is_sent_of_a_job_that_was_ended(place: Place) -> None:
    files = StagedFiles(outputs=(StagedOutput(name="out", url="http://h/o"),))
    place.run(f"echo made > out; echo told > ../{ENDED}", files)
    assert not (place.work / "out").exists()
