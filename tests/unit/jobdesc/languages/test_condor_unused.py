"""Commands that are left out or refused have a reason; HTCondor's own spelling of each is known."""

from wms.jobdesc.languages.condor_unused import UNUSED


def test_every_command_has_a_reason_and_is_in_lower_case() -> None:
    assert all(entry.how for entry in UNUSED.values())
    assert all(name == name.lower() for key, entry in UNUSED.items() for name in (key, *entry.names))


def test_policies_are_never_left_out() -> None:
    policies = ("periodic_release", "periodic_vacate")
    assert {UNUSED[each].fate for each in policies} == {"kept"}
