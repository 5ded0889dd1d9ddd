from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.preferences_xml import preferences_of, read_preferences, write_preferences
from wms.jobdesc.loss_report import Origin
from wms.jobdesc.preferences import JobBenchmark, JobPreferences
from wms.jobdesc.problem import InvalidDescription

FIGURE = """<JobPreferences>
  <SchedulingHints>
    <Benchmark name="nas-lu-c" result="450" time="60"/>
    <Benchmark name="specFP2000" result="1750" time="45"/>
    <FileTransfers><StageOutTime>10</StageOutTime></FileTransfers>
  </SchedulingHints>
  <JobRequirement>
    <EarliestAbsoluteStart>
      2005-08-11T10:00:00Z
    </EarliestAbsoluteStart>
    <LatestRelativeStart>30</LatestRelativeStart>
    <JobObjective>
      EarliestJobCompletion
    </JobObjective>
  </JobRequirement>
</JobPreferences>"""


def read(text: str) -> tuple[JobPreferences | None, JobDraft]:
    draft = JobDraft()
    draft.put("executable", "x", Origin("x"))
    read_preferences(draft, etree.fromstring(text))
    found = draft.finished()
    return (None if found is None else found.preferences), draft


def test_the_figure_of_the_reference() -> None:
    found, draft = read(FIGURE)
    assert found == JobPreferences(
        benchmarks=(
            JobBenchmark(name="nas-lu-c", result=450, seconds=3_600),
            JobBenchmark(name="specFP2000", result=1_750, seconds=2_700),
        ),
        stage_out_seconds=600,
        earliest_start=datetime(2005, 8, 11, 10, tzinfo=UTC),
        latest_start_after=1_800,
        objective="earliest-completion",
    )
    assert not draft.notes.report().losses


def test_all_parts_are_optional() -> None:
    assert read("<JobPreferences/>")[0] == JobPreferences()
    empty = "<JobPreferences><JobRequirement><LatestRelativeStart> </LatestRelativeStart></JobRequirement></JobPreferences>"
    assert read(empty)[0] == JobPreferences()


@pytest.mark.parametrize(
    "text",
    ["<Surprise/>", "<JobObjective>Fame</JobObjective>", "<LatestRelativeStart>soon</LatestRelativeStart>"],
)
def test_what_is_no_preference_is_impossible(text: str) -> None:
    _, draft = read(f"<JobPreferences><JobRequirement>{text}</JobRequirement></JobPreferences>")
    assert len(draft.notes.report().losses) == 1


@given(
    st.builds(
        JobPreferences,
        stage_in_seconds=st.none() | st.integers(0, 10_000).map(lambda n: n * 60.0),
        earliest_start_after=st.none() | st.integers(0, 10_000).map(lambda n: n * 60.0),
        latest_start=st.none() | st.integers(0, 10**9).map(lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=n)),
        objective=st.sampled_from(["earliest-completion", "earliest-start"]),
        reservation=st.booleans(),
        flexible=st.booleans(),
    )
)  # fmt: skip
def test_what_is_written_is_read(wanted: JobPreferences) -> None:
    assert read(etree.tostring(write_preferences(wanted, "urn:x")).decode())[0] == wanted


def test_a_document_of_its_own_holds_the_same() -> None:
    assert preferences_of(FIGURE.encode()) == read(FIGURE)[0]


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        ("<JobPreferences>\n<JobRequirement>\n<Speed/></JobRequirement></JobPreferences>", "Speed", 3),
        ("<JobPreferences><JobRequirement><JobObjective>x</JobObjective></JobRequirement></JobPreferences>", "JobObjective", 1),
        ("<Preferences/>", "", 1),
        ("{}", "", 1),
    ],
)  # fmt: skip
def test_what_a_document_of_its_own_says_wrongly_is_named_with_its_line(
    text: str, place: str, line: int
) -> None:
    with pytest.raises(InvalidDescription) as caught:
        preferences_of(text.encode())
    assert [(each.place, each.line) for each in caught.value.problems] == [(place, line)]
