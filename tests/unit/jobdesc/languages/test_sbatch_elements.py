"""The options of sbatch(1)."""

from wms.jobdesc.languages.sbatch_elements import ELEMENTS, LETTERS, NAMES, SAME


def test_every_letter_and_every_older_name_is_that_of_an_option() -> None:
    assert set(LETTERS.values()) <= NAMES.keys()
    assert set(SAME.values()) <= NAMES.keys()


def test_every_option_is_told_once() -> None:
    told = [name.rpartition("--")[2] for name in ELEMENTS]
    assert sorted(told) == sorted(NAMES.keys() - SAME.keys())
