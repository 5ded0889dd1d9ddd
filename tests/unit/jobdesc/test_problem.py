"""Problems of a description as an error."""

import pickle

from wms.jobdesc import (
    InvalidDescription,
    Problem,
)


def test_a_refusal_survives_pickling() -> None:
    refusal = InvalidDescription([Problem(place="a", message="b", remedy="c", line=3)])
    again = pickle.loads(pickle.dumps(refusal))
    assert again.problems == refusal.problems
    assert (again.code, again.details) == ("DESCRIPTION_INVALID", ("a (line 3): b; c",))
