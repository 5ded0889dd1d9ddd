"""The readers: strict, bounded before they parse, and telling every problem with its place and line."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.problems import VALUES, places
from wms.errors import Rejected
from wms.jobdesc import read, read_json, read_toml


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"executable": "a", "executable": "b"}', "executable"),
        ('[{"executable": "a", "environment": {"A": "1", "A": "2"}}]', "jobs[0].environment.A"),
        ('{"jobs": [{"executable": "a"}], "jobs": []}', "jobs"),
        ('{"executable": "a", "cpu_time": NaN}', "cpu_time"),
        ('{"executable": "a", "cpu_time": 1e400}', "cpu_time"),
        ('{"executable": "a", "cpu_time": ' + "9" * 100_000 + "}", "cpu_time"),
        ('{"executable": "a", "cpu_time": 6.5}', "cpu_time"),
        ('{"executable": "\\ud800"}', "executable"),
        ('{"executable": "a", "array": 1000000000}', "array"),
        ('{"jobs": [{"executable": "a"}], "default": {}}', "default"),
        ('{"defaults": {}}', "defaults"),
        ('{"jobs": 5}', "jobs"),
        ("[{}, 5]", "jobs[1]"),
        ('{"executable": "a\nb"}', ""),
        ("[]", ""),
        ("{", ""),
        ('{"executable": "a",}', ""),
        ("executable = 1979-05-27", "executable"),
        ('executable = "a"\nexecutable = "b"', ""),
        ('executable = "a', ""),
        ("cpu_time = " + "9" * 100_000, ""),
        ("a" + ".a" * 100 + " = 1", ""),
        ("", "executable"),
    ],
)
def test_traps_are_refused_with_their_place(text: str, place: str) -> None:
    assert place in places(text)


HOSTILE = {
    "open": b"[" * 4_000_000,
    "pairs": b"[" + b"[]," * 200_000 + b"[]]",
    "quotes": b"[" * 17 + b'"\\' * 2_000_000,
    "tables": b'{"a":' * 700_000,
    "triple": b"[" * 17 + b'""" ' * 900_000,
    "digits": b"a=" + b"1" * 4_000_000,
    "keys": b"\n".join(b"a%d={}" % i for i in range(20_000)),
    "dots": b"a." * 2_000_000 + b"b=1",
    "lines": b"{}\n" * 1_000_000,
    "blanks": b'["]"' + b" " * 1_000_000 + b"]\na=1",
    "spaces": b"[" + b" " * 2_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("reader", [read_json, read_toml])
def test_hostile_documents_are_refused_in_bounded_time(name: str, reader: Any) -> None:
    started = time.process_time()
    with pytest.raises(Rejected):
        reader(HOSTILE[name])
    assert time.process_time() - started < 10


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for reader in (read, read_json, read_toml):
        said = ""
        try:
            reader(data)
        except Rejected as refusal:
            said = str(refusal)
        assert all(line.isprintable() for line in said.splitlines())


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["executable", "name", "cpu_time", "sites", "x"]), VALUES), max_size=3
    )
)
def test_any_json_is_read_or_refused(document: list[dict[str, object]]) -> None:
    try:
        jobs = read(json.dumps(document).encode())
    except Rejected:
        return
    assert len(jobs) == len(document)
