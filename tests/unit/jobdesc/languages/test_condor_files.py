"""The files of submit files."""

from wms.jobdesc.languages import condor_files
from wms.jobdesc.languages.condor_job import CondorJob
from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.draft import JobDraft


def test_names_are_listed_with_commas() -> None:
    assert condor_files.names_of('"a, b ,"') == ["a", "b"]
    assert [condor_files.is_no(each) for each in ("False", '"no"', "true")] == [True, True, False]


def test_outputs_below_directories_are_told() -> None:
    draft = JobDraft()
    condor_files.output_files(CondorJob(draft, {}), Command("transfer_output_files", "d/a, b", 1))
    assert draft.get("output_sandbox") == ["d/a", "b"]
    assert [each.fate for each in draft.notes.report().entries] == ["translated", "kept"]


def test_a_directory_of_inputs_needs_a_name() -> None:
    draft = JobDraft()
    condor_files.input_files(CondorJob(draft, {}), Command("transfer_input_files", "..", 1))
    assert [each.fate for each in draft.notes.report().entries] == ["impossible"]
