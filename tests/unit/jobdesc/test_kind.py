"""What a glance tells of a description is what reading it whole tells, or nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.jobdesc.description import JobDescription
from wms.jobdesc.kind import KINDS_LIMIT, SIZE_LIMIT, JobKinds, OwnFields
from wms.jobdesc.validation import validate

ONE = JobDescription(
    executable="bin/simulate",
    arguments=("--seed", "1"),
    environment={"RUN": "7", "MODE": "fast"},
    name="sim-1",
    cpu_time=600,
    sites=("CERN",),
    output_sandbox=("*.log",),
    success_exit_codes=(0, 3),
)


def encoded(**changes: object) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(ONE, **changes))


def knowing(*descriptions: JobDescription) -> JobKinds:
    kinds = JobKinds()
    for each in descriptions or (ONE,):
        kinds.remember(each)
    return kinds


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": ("--seed", "2", "", 'a "quoted" \\ word')},
        {"arguments": ()},
        {"environment": {"RUN": "8:9", "MODE": '{"RUN":"x"}'}},
        {"name": "sim-2"},
        {"name": ""},
        {"name": 'a "b" \u00e9'},
        {"arguments": ("\u00e9",)},
        *({"priority": priority} for priority in range(11)),
    ],
)
def test_what_is_a_jobs_own_makes_no_other_kind(changes: dict[str, object]) -> None:
    kinds = knowing()
    raw = encoded(**changes)
    read, other = kinds.read(raw), kinds.read(encoded())
    assert read is not None
    assert other is not None
    assert read.kind is other.kind
    wanted = msgspec.structs.replace(ONE, **changes)
    assert (read.name, read.priority, read.text) == (wanted.name, wanted.priority, raw.decode())


@pytest.mark.parametrize(
    "changes",
    [
        {"executable": "bin/other"},
        {"environment": {"RUN": "7"}},
        {"environment": {"MODE": "fast", "RUN": "7"}},
        {"environment": {}},
        {"cpu_time": 601},
        {"sites": ()},
        {"array": 2},
        {"max_attempts": 4},
        {"arguments": ("\n",)},
        {"arguments": ("x" * SIZE_LIMIT,)},
        {"environment": {"RUN": "\x7f", "MODE": "fast"}},
        {"name": "x" * 256},
        {"name": "\u202e"},
        {"priority": 11},
        {"priority": -1},
        {"priority": 100},
    ],
)
def test_anything_else_is_to_be_read_whole(changes: dict[str, object]) -> None:
    assert knowing().read(encoded(**changes)) is None


FOREIGN = (
    # doubled, at its default, in another order, unknown, of another type, not JSON
    (b'"name":"sim-1"', b'"name":"sim-1","name":"sim-2"'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":1'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":5,"priority":5'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":5,"priority":6'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":05'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":5.0'),
    (b'"name":"sim-1"', b'"name":"sim-1","priority":"5"'),
    (b'"name":"sim-1"', b'"priority":5,"name":"sim-1"'),
    (b'"RUN":"7"', b'"RUN":"7","RUN":"8"'),
    (b'"RUN"', b'"WMS_RUN"'),
    (b'"name":"sim-1"', b'"name":""'),
    (b'"arguments":["--seed","1"]', b'"arguments":[]'),
    (b'"arguments":["--seed","1"]', b'"arguments":["--seed",1]'),
    (b'"environment":{"RUN":"7","MODE":"fast"}', b'"environment":{}'),
    (b'"cpu_time":600', b'"cpu_time": 600'),
    (b'"sites":["CERN"]', b'"sites":["CERN"],"priority":1'),
    (b'"sites":["CERN"]', b'"sites":["CERN"],"priority":5'),
    (b'"executable":"bin/simulate"', b'"executable":"bin/simulate","executable":"bin/simulate"'),
    (b'"cpu_time":600', b'"cpu_time":600,"arguments":["--seed","1"]'),
    (b'"success_exit_codes":[0,3]', b'"success_exit_codes":[0,3],"name":"sim-1"'),
    (b'{"executable"', b'{ "executable"'),
    (b"--seed", b"--\\u0073eed"),
    (b"--seed", b"--\x00seed"),
    (b"--seed", b"\xff"),
    (b"}", b"} "),
)


@pytest.mark.parametrize(("part", "instead"), FOREIGN)
def test_what_no_encoder_of_ours_writes_is_never_known(part: bytes, instead: bytes) -> None:
    raw = encoded()
    assert part in raw
    assert knowing().read(raw.replace(part, instead)) is None


def test_the_fields_of_a_jobs_own_come_first_in_a_description() -> None:
    first, own = (
        [(field.name, field.default, field.default_factory) for field in msgspec.structs.fields(kind)]
        for kind in (JobDescription, OwnFields)
    )
    assert first[: len(own)] == own


TEXTS = st.text(st.sampled_from('aZ0 ,:{}[]"\\\u00e9\n'), max_size=8)
DESCRIPTIONS = st.builds(
    JobDescription,
    executable=st.sampled_from(["sim", "a b", 'x","name":"y']),
    arguments=st.lists(TEXTS | st.just('","priority":3,"'), max_size=3).map(tuple),
    environment=st.dictionaries(st.sampled_from(["A", "B", "priority"]), TEXTS, max_size=2),
    name=st.sampled_from(["", "n", 'n"', "n,m"]),
    cpu_time=st.sampled_from([86_400, 60]),
    sites=st.sampled_from([(), ("S",), ("S", "priority")]),
    priority=st.integers(0, 10),
)
CUTS = st.tuples(
    st.integers(0, 200), st.integers(0, 12), st.sampled_from([b"", b'"', b",", b"5", b"}", b'""'])
)


@given(st.lists(DESCRIPTIONS, min_size=1, max_size=4), DESCRIPTIONS, CUTS | st.none())
def test_what_is_known_is_right_and_says_what_it_says(
    seen: list[JobDescription], one: JobDescription, cut: tuple[int, int, bytes] | None
) -> None:
    """Whatever is known at a glance decodes, encodes to the same bytes, and has nothing wrong with it."""
    kinds = knowing(*(each for each in (*seen, one) if not validate(each)))
    raw = msgspec.json.encode(one)
    if cut is not None:
        at, length, put = cut
        raw = raw[:at] + put + raw[at + length :]
    read = kinds.read(raw)
    if read is None:
        return
    whole = msgspec.json.decode(raw, type=JobDescription)
    assert msgspec.json.encode(whole) == raw
    assert validate(whole) == []
    assert (read.name, read.priority, read.text.encode()) == (whole.name, whole.priority, raw)
    own = {name: getattr(whole, name) for name in ("arguments", "environment", "name", "priority")}
    assert msgspec.structs.replace(read.kind.description, **own) == whole
    assert list(read.kind.description.environment) == list(whole.environment)


def test_kinds_are_forgotten_before_they_are_too_many() -> None:
    kinds = knowing(*(msgspec.structs.replace(ONE, cpu_time=1 + n) for n in range(KINDS_LIMIT)))
    assert kinds.read(encoded(cpu_time=1)) is not None
    kinds.remember(msgspec.structs.replace(ONE, memory_mb=1))
    assert kinds.read(encoded(cpu_time=1)) is None
    assert kinds.read(encoded(memory_mb=1)) is not None
