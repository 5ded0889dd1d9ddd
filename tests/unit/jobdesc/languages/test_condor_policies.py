"""Policies of submit files, judged by every way in which a job can end."""

import pytest

from wms.jobdesc.languages.condor_job import CondorJob
from wms.jobdesc.languages.condor_policies import POLICIES, limit_of, truth
from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.draft import JobDraft


@pytest.mark.parametrize(
    ("name", "text", "fate"),
    [
        ("on_exit_hold", "false", "kept"),
        ("on_exit_hold", "(ExitBySignal == True) || (ExitCode != 0)", "translated"),
        ("on_exit_hold", "ExitBySignal =?= True || ExitCode =!= 0", "translated"),
        ("on_exit_hold", "ExitCode != 0", "impossible"),
        ("on_exit_hold", "NumJobStarts > 3", "impossible"),
        ("on_exit_remove", "true", "kept"),
        ("on_exit_remove", "(ExitBySignal == False) && (ExitCode == 0)", "impossible"),
        ("periodic_remove", "JobStatus == 5 && HoldReasonCode == 3", "kept"),
        ("periodic_remove", "JobStatus == 2 && time() - EnteredCurrentStatus > 60", "translated"),
        (
            "periodic_hold",
            "(JobStatus == 2) && ((CurrentTime - EnteredCurrentStatus) > (60 * 60 * 2))",
            "translated",
        ),
        ("periodic_remove", "time() - EnteredCurrentStatus > 60", "impossible"),
        ("periodic_remove", "JobStatus == 2 && ImageSize > 60", "impossible"),
        ("periodic_hold", "(", "impossible"),
    ],
)
def test_a_policy_is_carried_out_or_refused(name: str, text: str, fate: str) -> None:
    draft = JobDraft()
    POLICIES[name].handler(CondorJob(draft, {}), Command(name, text, 1))
    assert [each.fate for each in draft.notes.report().entries] == [fate]


def test_a_time_of_running_is_a_limit() -> None:
    assert limit_of("(JobStatus == 2) && ((CurrentTime - EnteredCurrentStatus) > (60 * 60 * 2))") == 7_200


def test_the_truth_of_a_policy() -> None:
    assert truth("ExitCode > 1", {"exitcode": 2}) is True
    assert truth("ExitCode > x", {"exitcode": 2}) is None
