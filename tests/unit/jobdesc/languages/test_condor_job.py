"""Jobs of submit files, and entries of the catalogue."""

from wms.jobdesc.languages.condor_job import CondorJob, omitted, only, refused
from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.draft import JobDraft


def test_an_entry_notes_what_it_does() -> None:
    draft = JobDraft()
    for entry in (omitted("no use"), refused("no way"), only(("true",), "not so")):
        for value in ("True", "x"):
            entry.handler(CondorJob(draft, {}), Command("c", value, 1))
    fates = [each.fate for each in draft.notes.report().entries]
    assert fates == ["omitted", "omitted", "impossible", "impossible", "kept", "impossible"]


def test_a_job_in_a_container_has_an_image() -> None:
    image = Command("docker_image", "a", 1)
    assert CondorJob(JobDraft(), {"docker_image": image}).is_in_container()
    assert not CondorJob(JobDraft(), {}).is_in_container()
