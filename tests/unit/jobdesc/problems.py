"""The problems that a document is refused with."""

import json

import pytest
from hypothesis import strategies as st

from wms.jobdesc import InvalidDescription, Problem, read


def problems(data: bytes | str | object) -> list[Problem]:
    raw = data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
    with pytest.raises(InvalidDescription) as refused:
        read(raw)
    return list(refused.value.problems)


def places(data: bytes | str | object) -> list[str]:
    return [problem.place for problem in problems(data)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
