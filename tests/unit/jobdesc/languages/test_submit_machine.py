from tests.unit.jobdesc.languages.condor_machine import MACHINE


def test_a_machine_tells_names_and_texts() -> None:
    assert [each.name for each in MACHINE.matching("*") if each.is_directory] == ["d.dat"]
    assert MACHINE.text("more.sub").startswith("v =")
