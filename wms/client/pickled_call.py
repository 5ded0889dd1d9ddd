"""Function calls pickled for a job to run, and the pickled outcomes that jobs send back."""

import importlib
import pickle
import types
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

from wms.client import remote_call
from wms.errors import Rejected

CALL_BYTES = 32 * 1024 * 1024
Outcome = tuple[bool, Any, str]
"""Whether a call returned without an exception, its result or its exception, and the traceback of the exception."""


class EachOf:
    """A function that one job calls many times, once for each tuple of arguments in a list."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Return the list of the results, one for each tuple of arguments."""
        return [self.function(*each) for each in rows]


class _Local(pickle.Pickler):
    """A pickler that refuses classes and functions of the main program, which a site does not have."""

    def persistent_id(self, value: Any) -> None:
        """Check an object before it is pickled; raise PicklingError if a site could not unpickle it. Return None."""
        if isinstance(value, type | types.FunctionType) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the program itself (__main__)")


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, for a job that calls it. A partial function or a chunk has that of what it calls."""
    while isinstance(function, EachOf | partial):
        function = function.function if isinstance(function, EachOf) else function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))[:100]


def pickled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Return a pickled call. Raise Rejected if it cannot be pickled, a site could not unpickle it, or it is too large."""
    many = isinstance(function, EachOf)
    called = function.function if isinstance(function, EachOf) else function
    try:
        raw = _dumped((called, *args, None) if many else (called, args, kwargs))
    except Exception as error:
        raise Rejected(
            "CANNOT_BE_SENT",
            f"the call of {name_of(function)} cannot be sent: {type(error).__name__}: {str(error)[:300]}",
            "pip install cloudpickle, or put the function into a module and give it: Executor(files=['module.py'])",
        ) from error
    if len(raw) > CALL_BYTES:
        raise Rejected(
            "CALL_TOO_LARGE",
            f"function and arguments are {len(raw):,} bytes, more than {CALL_BYTES:,}",
            "give the data by Executor(files=[...]), or let the job read them",
        )
    return raw


def _dumped(call: object) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        file = BytesIO()
        _Local(file).dump(call)
        return file.getvalue()
    raw: bytes = cloudpickle.dumps(call)
    return raw


def unpickled(raw: bytes, job_id: int) -> Outcome:
    """Return the outcome that a job has sent; unpickling runs code that the job chose.

    Raise Rejected, with `job_id` in its text, if the outcome cannot be unpickled.
    """
    try:
        returned, value, trace = remote_call.read(raw)  # the executor's page says whom it trusts
        if not (returned or isinstance(value, BaseException)):
            raise TypeError("it has neither a result nor an error")  # noqa: TRY301 - it is told as all others are
    except Exception as error:
        text = f"what job {job_id} returned cannot be read here: {type(error).__name__}: {error}"
        raise Rejected(
            "OUTCOME_UNREADABLE", text, "return plain values, or import the same modules here"
        ) from error
    return returned, value, trace
