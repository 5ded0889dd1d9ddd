"""Job arrays: many jobs of one description, which differ by the index `{n}` and by lists of parameters.

A placeholder is `{n}` or `{the name of a parameter}`. Doubled braces, `{{n}}`, give the literal `{n}`. Other texts in braces
belong to the user and stay as they are, as do all texts of a description that is no array. The executable is the same for all
jobs of an array. Arguments, environment, name, output patterns, and files by URL may differ.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from wms.jobdesc.description import JobDescription, SandboxRef

INDEX = "n"
CHUNK = 1_000
"""For how many jobs of an array the values of parameters are sent and stored together."""
ARCHIVE = re.compile(r"([0-9a-f]{64}):(0|[1-9][0-9]{0,9})")
"""The value of an input parameter: the digest and the size in bytes of an archive in the sandbox store."""
PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


def is_array(description: JobDescription) -> bool:
    """Return whether the description makes an array of jobs, perhaps of one job. If not, it makes a single job."""
    return description.array is not None or bool(description.parameters)


def jobs_in(description: JobDescription) -> int:
    """Return the number of jobs that the description makes: 1 if it is no array."""
    if description.array is not None:
        return description.array
    return next((len(values) for values in description.parameters.values()), 1)


def own_description(body: str, index: int | None, parameters: str | None) -> JobDescription:
    """Return the description of one job from what the database stores of it.

    `body` is the job's or its array's description as JSON. `index` is the job's index in the array, None for no array. `parameters` are
    the job's values of the parameters as JSON, None for none.
    """
    own = msgspec.json.decode(parameters, type=dict[str, str]) if parameters else {}
    return expand(msgspec.json.decode(body, type=JobDescription), index or 0, own)


def expand(description: JobDescription, index: int, own: Mapping[str, str] | None = None) -> JobDescription:
    """Return the job with this index (from 0) as a description of its own, with all placeholders replaced.

    `own` are the values of this job by the names of the parameters. None: they are taken from the lists of the description.
    A description that is no array is returned unchanged. Raise IndexError if the array has no job with this index. Raise
    ValueError if an input parameter of the job names no archive.
    """
    if not 0 <= index < jobs_in(description):
        raise IndexError(f"no job {index} in an array of {jobs_in(description)}")
    if not is_array(description):
        return description
    if own is None:
        own = {name: column[index] for name, column in description.parameters.items()}
    fill = filler(index, own)
    return msgspec.structs.replace(
        description,
        arguments=tuple(map(fill, description.arguments)),
        environment={key: fill(value) for key, value in description.environment.items()},
        name=fill(description.name),
        input_sandbox=(*description.input_sandbox, *_archives(description, own)),
        input_parameters=(),
        output_sandbox=tuple(map(fill, description.output_sandbox)),
        inputs=tuple(
            msgspec.structs.replace(each, name=fill(each.name), sources=tuple(map(fill, each.sources)))
            for each in description.inputs
        ),
        outputs=tuple(
            msgspec.structs.replace(each, name=fill(each.name), targets=tuple(map(fill, each.targets)))
            for each in description.outputs
        ),
        stdin=fill(description.stdin),
        stdout=fill(description.stdout),
        stderr=fill(description.stderr),
        array=None,
        parameters={},
    )


def _archives(description: JobDescription, own: Mapping[str, str]) -> Iterator[SandboxRef]:
    for name in description.input_parameters:
        found = ARCHIVE.fullmatch(own.get(name, ""))
        if found is None:
            raise ValueError(f"the parameter {name} names no archive of the sandbox store")
        yield SandboxRef(sha256=found[1], size=int(found[2]))


def as_value(archive: SandboxRef) -> str:
    """Return the text that names an archive as the value of an input parameter: `sha256:size`."""
    return f"{archive.sha256}:{archive.size}"


def argv(description: JobDescription, index: int = 0) -> tuple[str, ...]:
    """Return the command line of the job with this index (from 0): its executable and its arguments, placeholders replaced.

    Raise IndexError if there is no job with this index.
    """
    one = expand(description, index)
    return (one.executable, *one.arguments)


def filler(index: int, own: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the placeholders in a text by the index and the values `own` of one job."""
    values = {**own, INDEX: str(index)}

    def replacement(found: re.Match[str]) -> str:
        literal, name = found.groups()
        if literal in values:
            return f"{{{literal}}}"
        return values.get(name, found[0])

    def fill(text: str) -> str:
        return PLACEHOLDER.sub(replacement, text) if "{" in text else text

    return fill


def in_chunks(lists: Mapping[str, Sequence[str]], count: int) -> Iterator[dict[str, Sequence[str]]]:
    """Yield the parameter lists of `count` jobs in chunks: each has the values of the next 1,000 jobs, by parameter name."""
    for start in range(0, count, CHUNK):
        yield {name: values[start : start + CHUNK] for name, values in lists.items()}


def without_lists(description: JobDescription) -> JobDescription:
    """Return the description of an array with its number of jobs, but without its lists of parameters.

    Arrays are stored and sent in this form, with the values of the jobs separately.
    """
    return msgspec.structs.replace(description, array=jobs_in(description), parameters={})
