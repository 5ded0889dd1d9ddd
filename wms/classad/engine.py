"""The HTCondor project's ClassAd library, `classad2`, behind an interface of our own; no other module imports it.

All texts that reach the library are written from our own trees, and their cost is bounded first. So the defects of its parser do no
harm: numbers that overflow to 0, text that is not read, crashes on half characters.

The library (25.14.1) never frees the 144 bytes of a Python handle. An expression takes three handles and an ad one. So ads are
emptied and used again. Texts that are evaluated once go through its function `eval`, which needs no handle. Only expressions that are
evaluated often are compiled, once for each text.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from wms.classad.grammar import TEXT_NAME
from wms.classad.value import ERROR, UNDEFINED, RecordText, Value
from wms.errors import Rejected

if TYPE_CHECKING:
    import classad2

COMPILED = 16_384
"""The most compiled expressions in the cache. Each expression that must be compiled again leaks 450 bytes of memory."""
_SPARE = 1_024
"""The most emptied ads that are kept for later use."""
_evaluating = Lock()


@cache
def _library() -> Any:
    try:
        import classad2
    except ImportError as error:
        raise Rejected(
            "CLASSAD_LIBRARY",
            f"ClassAd expressions cannot be evaluated here: {error}",
            "install htcondor, of which there are wheels for Linux on x86_64 and aarch64",
        ) from error
    return classad2


@lru_cache(maxsize=COMPILED)
def compiled(text: str) -> "classad2.ExprTree":
    """Return the library's tree of an expression. `text` must be written from one of our trees, as by `library_text`."""
    return _library().ExprTree(text)


def library_ad(text: str) -> "classad2.ClassAd":
    """Return the library's ad of a text. `text` must be written from one of our trees by `library_text`."""
    return _library().ClassAd(text)


def evaluate(tree: "classad2.ExprTree", own: Any = None, other: Any = None) -> Any:
    """Return the library's value of an expression over the ads `own` and `other`; its error value if the evaluation fails."""
    try:
        return tree.eval(own, other)
    except (_library().ClassAdException, UnicodeDecodeError):
        # Too deep for it; or half of a character was cut out.
        return _library().Value.Error


def error() -> Any:
    """Return the library's value that stands for an error."""
    return _library().Value.Error


def value(found: Any, again: Callable[[Any], Any]) -> Value:
    """Convert a value from the library's types to a `Value`. `again` evaluates list items that are still expressions."""
    library = _library()
    match found:
        case library.Value():
            # A kind of integer, which equals 1 or 2.
            return UNDEFINED if found is library.Value.Undefined else ERROR
        case bool() | int() | float() | str():
            return found
        case list():
            return tuple(value(each, again) for each in found)
        case library.ClassAd():
            return RecordText(" ".join(str(found).split()))
        case library.ExprTree():
            return value(again(found), again)
        case _:
            raise AssertionError(f"a value of the library of type {type(found)}")


def evaluate_text(text: str, own: Any, other: Any = None) -> Value:
    """Return the value of an expression's text, evaluated as an attribute of the library's ad `own`. Nothing is compiled or cached.

    The text may reference the ad `other`.
    """
    # Another thread may evaluate another text there.
    with _evaluating:
        own[TEXT_NAME] = text
        try:
            return value(evaluate(_once(), own, other), lambda each: evaluate(each, own, other))
        finally:
            del own[TEXT_NAME]


class Values:
    """An ad of the library with attributes, over which expressions of other ads are evaluated.

    After `empty`, the library's ad is used for other attributes.
    """

    _spare: "list[classad2.ClassAd]" = []

    def __init__(self) -> None:
        try:
            self.ad = self._spare.pop()
        except IndexError:
            self.ad = library_ad("[]")

    def __setitem__(self, name: str, value: Value) -> None:
        self.ad[name] = _given(value)

    def put(self, name: str, text: str) -> None:
        """Add an attribute with an expression, which is evaluated at each reference."""
        self.ad[name] = compiled(text)

    def evaluate(self, text: str) -> Value:
        """Return the value of an expression's text over these attributes. Nothing is compiled or cached."""
        return evaluate_text(text, self.ad)

    def empty(self) -> None:
        """Delete all attributes, and keep the library's ad for use by a later `Values`."""
        for name in list(self.ad):
            del self.ad[name]
        if len(self._spare) < _SPARE:
            self._spare.append(self.ad)


@cache
def _once() -> "classad2.ExprTree":
    return compiled(f"eval('{TEXT_NAME}')")


@cache
def nothing() -> Values:
    """Return an ad of the library without attributes, over which expressions without references are evaluated."""
    return Values()


def _given(value: Value) -> Any:
    match value:
        case _ if value is UNDEFINED:
            return _library().Value.Undefined
        case _ if value is ERROR:
            return _library().Value.Error
        case tuple():
            return [_given(each) for each in value]
        case _:
            return value
