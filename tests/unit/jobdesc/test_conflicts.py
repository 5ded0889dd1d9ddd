"""Samples: a description with a few values of its lists is refused by the same rules as with all of them."""

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from wms.jobdesc import JobDescription
from wms.jobdesc.conflicts import across, samples

ARCHIVE = f"{'a' * 64}:5"
WORDS = st.text(st.sampled_from("aZ0._-"), max_size=4)
VALUE = (
    WORDS
    | st.text(st.sampled_from('aZ0._-/ ,[]"\\\u00e9\u202e\n\t'), max_size=6)
    | st.sampled_from(["w" * 300, ARCHIVE])
)
VALUES = st.lists(VALUE, min_size=1, max_size=8) | st.lists(WORDS, min_size=1, max_size=8)
WHERE = st.sampled_from(["{x}", "out-{x}", "{x}" * 3, "plain"])


def broken(values: list[str], more: dict[str, Any]) -> set[tuple[str, str]]:
    """Return which rules between fields are broken, without the values and where they are."""
    description = JobDescription(executable="true", parameters={"x": tuple(values)}, **more)
    return {(place.partition("[")[0], re.split('"', message)[0]) for place, message, _ in across(description)}


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    WHERE,
    WHERE,
    st.sampled_from([(), ("x",)]),
    st.sampled_from([1, 100]),
)
@example([["a\nb", "\u202e"]], "{x}", "plain", (), 1)
@example([["w" * 260, "\u20ac" * 100]], "{x}", "{x}", (), 1)
@example([[ARCHIVE, "none", ARCHIVE]], "plain", "plain", ("x",), 1)
@example([[ARCHIVE, "no/archive"], [ARCHIVE]], "plain", "plain", ("x",), 1)
@example([["a", "w" * 300], ["b" * 400]], "plain", "plain", (), 400)
def test_samples_break_the_rules_that_all_values_break(
    parts: list[list[str]], name: str, output: str, inputs: tuple[str, ...], times: int
) -> None:
    more: dict[str, Any] = {
        "name": name,
        "output_sandbox": (output,),
        "arguments": ("{x}",) * times,
        "input_parameters": inputs,
    }
    whole = [value for part in parts for value in part]
    few = [value for part in parts for value in samples(part)]
    assert set(few) <= set(whole)
    assert broken(few, more) == broken(whole, more)


@given(VALUES, VALUES)
def test_any_lists_have_equally_many_samples(some: list[str], others: list[str]) -> None:
    assert len(samples(some)) == len(samples(others))
