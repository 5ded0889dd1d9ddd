"""The program of a job of `wms.client.executor`: loads a pickled call, runs it, and writes its result or its error to a file.

This file is sent with the job and imports nothing of wms, so that any Python can run it.
"""

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

CALL, OUTCOME, INITIALIZER = "wms_call.pkl", "wms_outcome.pkl", "wms_initializer.pkl"


def load(path: str) -> tuple:  # type: ignore[type-arg]
    """Return the value that is pickled in a file. Raise ImportError, with a remedy, if it needs a module that is missing."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the fewer imports, the faster
            return pickle.load(file)  # type: ignore[no-any-return]  # noqa: S301 - the job's own
    except ImportError as error:
        raise ImportError(f"{error} at the site; Executor(files=[...]) sends a module along") from None


def called(
    function: Callable[..., object], arguments: Sequence[Any], named: "dict[str, object] | None"
) -> object:
    """Return the result of calling the function with `arguments` and the keyword arguments `named`.

    If `named` is None, each item of `arguments` is the tuple of one call; return the list of all results.
    """
    if named is None:
        return [function(*each) for each in arguments]
    return function(*arguments, **named)


def outcome() -> "tuple[bool, object, str]":
    """Run the initializer, if the job has one, and then the call.

    Return whether both succeeded, the result or the exception, and the traceback (empty on success).
    """
    sys.path.insert(0, ".")
    try:
        if os.path.exists(INITIALIZER):  # noqa: PTH110 - the fewer imports, the faster
            called(*load(INITIALIZER))
        return True, called(*load(CALL)), ""
    except BaseException as error:  # noqa: BLE001 - whatever it is goes to the caller
        return False, error, traceback.format_exc()


def packed(returned: bool, value: object, trace: str) -> bytes:  # noqa: FBT001
    """Return the pickled outcome of a call: whether it `returned`, its result or exception, and the traceback.

    If the result or exception cannot be pickled, return a pickled error that says why.
    """
    try:
        raw = pickle.dumps((returned, value, trace))
        if not returned:
            pickle.loads(raw)  # noqa: S301 - some exceptions can be written and not read
    except Exception as error:  # noqa: BLE001 - pickling runs what classes define
        what = "what the function returned" if returned else f"the error {type(value).__name__}: {value}"
        text = f"{what} cannot be sent back: {type(error).__name__}: {error}"
        return pickle.dumps((False, TypeError(text), trace))
    return raw


if __name__ == "__main__":
    with open(OUTCOME, "wb") as file:  # noqa: PTH123
        file.write(packed(*outcome()))
