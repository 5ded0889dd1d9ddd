"""How many GPUs a job asks for, by its description's number or by its requirements."""

import pytest

from wms.jobdesc.gpus import gpus_needed, required_gpus


@pytest.mark.parametrize(
    ("requirements", "gpus"),
    [
        ("", 0),
        ('other.Site == "gpu"', 0),
        ("other.GPUNumber >= 2", 2),
        ("(other.gpunumber > 0) && other.GPUMemory >= 9", 1),
        ("other.GPUNumber == 4 && other.x", 4),
        ("other.GPUNumber < 2", 0),
        (required_gpus(3), 3),
        (required_gpus(0), 0),
    ],
)
def test_the_number_that_gpus_must_reach(requirements: str, gpus: int) -> None:
    assert gpus_needed(requirements) == gpus
