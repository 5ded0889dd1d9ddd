"""Each document is read in the language that it is written in, and nothing that anyone writes stops a reader."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.errors import Rejected
from wms.jobdesc.languages import catalogue
from wms.jobdesc.languages.catalogue import LANGUAGES, language_of

SCRIPT = 'executable = "sh"\narguments = ["-c", """\nx = 1;\nqueue\n"""]\n'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"executable": "a"}', "json"),
        ('[{"executable": "a"}]', "json"),
        ('executable = "a"\n', "toml"),
        ('[[jobs]]\nexecutable = "a"\n', "toml"),
        ('# c\n[defaults]\ncpu_time = 5\n[[job]]\nexecutable = "a; b"\n', "toml"),
        (SCRIPT, "toml"),
        ('[\n  Executable = "a";\n]', "jdl"),
        ('# c\nExecutable = "a";\n', "jdl"),
        ('InputSandbox = {\n "a"};\nExecutable = "b";', "jdl"),
        ("&(executable=a)", "xrsl"),
        ("+(&(executable=a))", "xrsl"),
        ("executable = a\nqueue 5\n", "htcondor"),
        ("<ActivityDescription/>", "adl"),
        ("\ufeff<ActivityDescription/>", "adl"),
        ('\ufeff// c\n[ Executable = "a"; ]', "jdl"),
        ("#!/bin/sh\n#SBATCH -n 2\n", "sbatch"),
    ],
)
def test_a_language_is_told_by_the_content(text: str, name: str) -> None:
    found = language_of(text.encode())
    assert found is not None
    assert found.name == name


PIECES = st.sampled_from(
    ["executable", "=", '"a"', "queue", ";", "[", "]", "(", ")", "&", "|", "+", "{", "}", "\n", "$(a)", "#", "//", "/*", "*/", "'", "\\",
     "<ActivityDescription>", "</ActivityDescription>", "<Executable>", "Parameters", "5", "%s", ",", "in", "from", "\x00", "é", "^|"]
)  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(st.lists(PIECES, max_size=40).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for language in LANGUAGES:
        with suppress(Rejected):
            language.read(text.encode("utf-8", "surrogatepass")).jobs(lenient=True)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_recognised_or_not(data: bytes) -> None:
    language_of(data)


def test_a_document_with_too_many_jobs_is_refused_whole() -> None:
    two_queues = b"executable = /bin/true\nqueue 999999\nqueue 999999\n"
    with pytest.raises(Rejected, match="1,999,998 jobs") as refusal:
        catalogue.translate(two_queues)
    assert refusal.value.code == "TOO_MANY_JOBS"


def test_no_activity_is_left_out_in_silence() -> None:
    one = b"<ActivityDescription><Application><Executable><Path>/bin/true</Path></Executable></Application></ActivityDescription>"
    many = b"<ActivityDescriptions>" + one * 10_001 + b"</ActivityDescriptions>"
    assert len(catalogue.translate(many).descriptions) == 10_001
