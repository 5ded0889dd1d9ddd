"""Our descriptions as xRSL."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.languages.reading import fields
from wms.jobdesc import JobDescription
from wms.jobdesc.languages.xrsl import read
from wms.jobdesc.languages.xrsl_writer import write
from wms.jobdesc.staged_file import InputFile

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20)
NAMES = st.from_regex(r"[a-z][a-z0-9.]{0,8}", fullmatch=True)
DESCRIPTIONS = st.builds(
    JobDescription,
    executable=NAMES,
    arguments=st.lists(TEXTS, max_size=3).map(tuple),
    environment=st.dictionaries(st.from_regex(r"[A-V][A-Z_]{0,5}", fullmatch=True), TEXTS, max_size=3),
    cpu_time=st.integers(1, 10**6),
    wall_time=st.none() | st.integers(1, 10**6),
    memory_mb=st.none() | st.integers(1, 10**5),
    disk_mb=st.none() | st.integers(1, 10**5),
    processors=st.integers(1, 64),
    max_attempts=st.integers(1, 9),
    whole_node=st.booleans(),
    stdin=st.just("") | NAMES,
    stdout=st.just("") | NAMES,
    output_sandbox=st.lists(NAMES, max_size=3).map(tuple),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(DESCRIPTIONS, min_size=1, max_size=3))
def test_what_is_written_is_read_again(descriptions: list[JobDescription]) -> None:
    document = write(descriptions)
    again = read(document.text.encode()).jobs(strict=True)
    assert list(map(fields, again)) == list(map(fields, descriptions))
    assert document.report.losses == ()


def test_what_xrsl_cannot_say_is_reported() -> None:
    checked = InputFile(name="a", sources=("https://h/a",), checksum="adler32:00000001")
    document = write(
        [JobDescription(executable="a", rank="other.x", tags=("GPU",), after=(7,), inputs=(checked,))]
    )
    assert sorted(each.element for each in document.report.losses) == ["after", "inputs a", "rank", "tags"]
