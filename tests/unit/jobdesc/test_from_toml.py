"""Descriptions in TOML."""

from tests.unit.jobdesc.problems import problems
from wms.jobdesc import JobDescription, read_toml


def test_one_job_as_toml() -> None:
    (job,) = read_toml(b'executable = "./a"\narguments = ["x"]\n[environment]\nA = "1"\n')
    assert job == JobDescription(executable="./a", arguments=("x",), environment={"A": "1"})


def test_problems_of_toml_name_their_line() -> None:
    text = '''# a comment with "quotes
[defaults]
cpu_time = "600"

[[job]]
executable = "./a"
arguments = [
    "a",
    7,
]
note = """
cpu_time = 5
[[job]]
"""

[[job]]
executable = "./b"  # [[job]]
environment = { "A B" = "x" }
[job.parameters]
n = ["a"]

[[job]]
name = "no executable"
'''
    assert [(problem.place, problem.line) for problem in problems(text)] == [
        ("defaults.cpu_time", 3),
        ("jobs[0].arguments[1]", 7),
        ("jobs[0].note", 11),
        ("jobs[1].environment.A B", 18),
        ("jobs[1].parameters.n", 20),
        ("jobs[2].executable", 22),
    ]
