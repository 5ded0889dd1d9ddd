"""Slurm's variables."""

from wms.jobdesc.languages.sbatch_variables import ABSENT, AT_THE_NODE, OF_ARRAYS, known


def test_each_variable_is_of_one_kind() -> None:
    assert not AT_THE_NODE.keys() & (ABSENT | OF_ARRAYS)
    assert not ABSENT & OF_ARRAYS


def test_what_is_not_known_says_why() -> None:
    assert "partitions" in known("SLURM_JOB_PARTITION")
    assert "not known" in known("SLURM_X")
