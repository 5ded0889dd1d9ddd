"""Our descriptions as xRSL."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.jobdesc.languages.reading import fields
from wms.jobdesc import JobDescription
from wms.jobdesc.languages.xrsl import read
from wms.jobdesc.languages.xrsl_writer import write
from wms.jobdesc.staged_file import InputFile

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20)
NAMES = st.from_regex(r"[a-z][a-z0-9.]{0,8}", fullmatch=True)
DESCRIPTIONS = st.builds(
    JobDescription,
    executable=NAMES.map("/bin/{}".format),
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
    again = read(document.text.encode()).jobs()
    assert list(map(fields, again)) == [fields(_of_whole_slots(each)) for each in descriptions]
    assert document.report.losses == ()


def _of_whole_slots(description: JobDescription) -> JobDescription:
    """Return the description with the memory that whole MiB of each slot make."""
    memory = (
        description.memory_mb and -(-description.memory_mb // description.processors) * description.processors
    )
    return replace(description, memory_mb=memory)


def test_memory_is_written_for_each_slot() -> None:
    assert '(memory="2000")' in write([JobDescription(executable="/a", processors=8, memory_mb=16_000)]).text


def test_a_program_that_is_looked_up_in_path_is_not_one_that_is_sent() -> None:
    found = read(write([JobDescription(executable="echo", arguments=("a",))]).text.encode())
    assert [(each.executable, each.arguments) for each in found.jobs()] == [("/usr/bin/env", ("echo", "a"))]
    assert not found.local_files


def test_what_xrsl_cannot_say_is_reported() -> None:
    checked = InputFile(name="a", sources=("https://h/a",), checksum="adler32:00000001")
    document = write(
        [JobDescription(executable="a", rank="other.x", tags=("GPU",), after=(7,), inputs=(checked,))]
    )
    assert sorted(each.element for each in document.report.losses) == ["after", "inputs a", "rank", "tags"]
