"""Batch scripts as Slurm parses them."""

import pytest

from wms.jobdesc.languages import catalogue
from wms.jobdesc.languages.sbatch_elements import LETTERS, NAMES, SAME
from wms.jobdesc.languages.sbatch_text import BatchScript, looks_like, parse
from wms.jobdesc.problem import InvalidDescription


def read(text: str) -> BatchScript:
    return parse(text, NAMES, LETTERS, SAME)


def said(line: str) -> list[tuple[str, str]]:
    return [(each.name, each.value) for each in read(f"#!/bin/sh\n{line}\nls\n").options]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH -n4 -J 'a b' # four", [("ntasks", "4"), ("job-name", "a b")]),
        ('#SBATCH --job-name="a \\"b\\""', [("job-name", 'a "b"')]),
        ("#SBATCH --job-name a\\ b", [("job-name", "a b")]),
        ("#SBATCH --ntasks-per-n=2", [("ntasks-per-node", "2")]),
        ("#SBATCH --tasks-per-node=2 --workdir=.", [("ntasks-per-node", "2"), ("chdir", ".")]),
        ("#SBATCH -HQ --exclusive --exclusive=user", [("hold", ""), ("quiet", ""), ("exclusive", ""), ("exclusive", "user")]),
        ("#SBATCH -o a#b", [("output", "a")]),
        ("##SBATCH -n 2", []),
        ("# SBATCH -n 2", []),
        ("#SBATCH\t-n 2", [("ntasks", "2")]),
        ("#SBATCH", []),
    ],
)  # fmt: skip
def test_the_words_of_a_line(line: str, expected: list[tuple[str, str]]) -> None:
    assert said(line) == expected


def test_options_end_at_the_first_command() -> None:
    found = read("#!/bin/sh\n\n# a comment\n#SBATCH -n 2\nset -e\n#SBATCH -n 3\n")
    assert [(each.value, each.line) for each in found.options] == [("2", 4)]
    assert found.late == (6,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#SBATCH -n 2\nls\n", "no script"),
        ("#!/bin/sh\r\n#SBATCH -n 2\r\n", "DOS"),
        ("#!/bin/sh\n#PBS -l nodes=1\nls\n", "PBS"),
        ("#!/bin/sh\n#BSUB -n 2\nls\n", "LSF"),
        ("#!/bin/sh\n#$ -cwd\nls\n", "Grid Engine"),
        ("#!/bin/sh\n#SBATCH --mem-per=2\nls\n", "may be mem-per-cpu or mem-per-gpu"),
        ("#!/bin/sh\n#SBATCH -Z\nls\n", "does not know"),
    ],
)
def test_what_slurm_would_not_take_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidDescription, match=reason):
        read(text)


@pytest.mark.parametrize("mark", ["#SBATCH -n 2", "#PBS -q a", "#BSUB -n 2", "#$ -cwd"])
def test_a_script_is_recognised_by_its_header(mark: str) -> None:
    data = f"#!/bin/bash\n# mine\n{mark}\n\nEPOCHS=1000;\n".encode()
    assert looks_like(data)
    assert catalogue.language_of(data) is catalogue.SBATCH
    assert not looks_like(f"#!/bin/bash\necho 1\n{mark}\n".encode())


def test_variables_that_the_script_sets_are_its_own() -> None:
    text = "#!/bin/sh\n# $SLURM_A\necho $SLURM_B ${SLURM_C:-1} $SLURMD_D\nexport SLURM_E=1\nunset SLURM_F\n"
    assert read(text).variables == {"SLURM_B": 3, "SLURM_C": 3, "SLURMD_D": 3}
