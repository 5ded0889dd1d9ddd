from tests.unit.jobdesc.descriptions import of
from wms.jobdesc import read_toml
from wms.jobdesc.preferences import JobBenchmark, JobPreferences
from wms.jobdesc.staged_file import InputFile
from wms.jobdesc.to_toml import write_toml

FULL = of(
    arguments=("{n}", "x" * 200, "a\n\t\"'\\\ud7ff\U0001f600"),
    environment={"A": "1", "B": ""},
    whole_node=True,
    attributes={"Big": 1e20, "Small": 1e-7, "Yes": True, "Many": (1, "two", False)},
    inputs=(InputFile(name="a", sources=("http://x/a", "file:/b"), size=3), InputFile(name="b", sources=("s3://b/b",))),
    preferences=JobPreferences(benchmarks=(JobBenchmark(name="b", result=1.5, seconds=60),), reservation=False),
    parameters={"p": ("1", "2")},
)  # fmt: skip


def test_one_description_is_read_as_it_was() -> None:
    assert read_toml(write_toml([FULL]).encode()) == [FULL]
    assert write_toml([of()]) == 'executable = "/bin/true"\n'


def test_several_descriptions_are_read_as_they_were() -> None:
    many = [FULL, of(name="b"), FULL]
    assert read_toml(write_toml(many).encode()) == many
