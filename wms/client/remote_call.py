"""The program of a job of `wms.client.executor`: loads a pickled call, runs it, and writes its result or its error to a file.

This file is sent with the job and imports nothing of wms, so that any Python can run it.
"""

import contextlib
import copyreg
import importlib
import io
import os
import pickle
import sys
import traceback
import types
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
        raw = _dumped((returned, value, trace))
        if not returned:
            read(raw)  # some exceptions can be written and not read
    except Exception as error:  # noqa: BLE001 - pickling runs what classes define
        what = "what the function returned" if returned else f"the error {type(value).__name__}: {value}"
        text = f"{what} cannot be sent back: {type(error).__name__}: {error}"
        return pickle.dumps((False, TypeError(text), trace))
    return raw


def read(raw: bytes) -> Any:
    """Return the value that `_dumped` has pickled. Classes that came with the call are the caller's own."""
    reader = _Reader(io.BytesIO(raw))
    return reader.load()


class _Reader(pickle.Unpickler):
    def persistent_load(self, name: str) -> type:
        """Return the class that cloudpickle has sent, or got, under this name."""
        cloudpickle = importlib.import_module("cloudpickle.cloudpickle")
        try:
            return cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[name]  # type: ignore[no-any-return] # noqa: SLF001
        except KeyError:
            raise pickle.UnpicklingError("a class of the caller is not there any more") from None


def _dumped(value: object) -> bytes:
    """Return the pickled value; by cloudpickle, if it is there.

    A class that came with the call is written by the name that cloudpickle gave it, not by value. Written by value, it would
    replace the methods of the caller's class by copies that have other globals.
    """
    base: Any = pickle.Pickler
    names: Any = {}
    with contextlib.suppress(ImportError):
        cloudpickle = importlib.import_module("cloudpickle.cloudpickle")
        base, names = cloudpickle.Pickler, cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS  # noqa: SLF001

    class Writer(base):  # type: ignore[misc]
        def persistent_id(self, value: object) -> Any:
            return names.get(value) if isinstance(value, type) else None

        def reducer_override(self, value: object) -> Any:
            if isinstance(value, BaseException) and _is_made_by_init(type(value)):
                return copyreg.__newobj__, (type(value), *value.args), _state(value)  # type: ignore[attr-defined]
            return super().reducer_override(value) if base is not pickle.Pickler else NotImplemented

    file = io.BytesIO()
    Writer(file).dump(value)
    return file.getvalue()


def _is_made_by_init(kind: type) -> bool:
    """Return whether a class of exceptions has an `__init__` of its own, and is pickled as if it had none.

    Python would read such an exception by calling `__init__` with `args`, which are often not what `__init__` takes.
    """
    own = [
        isinstance(getattr(kind, name), types.FunctionType)
        for name in ("__init__", "__reduce__", "__reduce_ex__")
    ]
    return own == [True, False, False]


def _state(error: BaseException) -> "dict[str, object]":
    """Return the attributes of an exception, with those that it keeps in slots, such as `errno`."""
    slots = {
        name: getattr(error, name, None)
        for kind in type(error).__mro__
        for name, slot in vars(kind).items()
        if isinstance(slot, types.MemberDescriptorType) and name not in ("exceptions", "message")
    }
    kept = {name: value for name, value in slots.items() if value is not None}
    return {**kept, "args": error.args, **vars(error)}


if __name__ == "__main__":
    with open(OUTCOME, "wb") as file:  # noqa: PTH123
        file.write(packed(*outcome()))
