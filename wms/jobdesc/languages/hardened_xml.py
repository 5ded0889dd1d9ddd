"""The only module that parses XML from users. No entity is expanded, nothing is fetched, and sizes are checked before the tree is built.

A document type declaration is refused where it begins, so there are no entities. The numbers of elements and attributes are bounded
before parsing, by counting `<` and `=` in the text. Depth is bounded by the parser, and then by this module.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from lxml import etree

from wms.errors import Rejected, shown
from wms.jobdesc.document import unreadable
from wms.jobdesc.loss_report import Origin
from wms.jobdesc.problem import InvalidDescription

SIZE_LIMIT: Final = 16 * 1024 * 1024
ELEMENTS_LIMIT: Final = 400_000
ATTRIBUTES_LIMIT: Final = 400_000
DEPTH_LIMIT: Final = 64

XmlNode: TypeAlias = Any
"""An element of lxml. It is Any, since lxml has no type annotations."""

_ENCODING = re.compile(r"""\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_LOOKS = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\x00]*<")
_BLANK = re.compile(r"\s*+")
_SIXTEEN = (b"\xff\xfe", b"\xfe\xff")
_LATIN = ("iso-8859-1", "latin1", "latin-1")


def looks_like_xml(data: bytes) -> bool:
    """Return whether a document begins as XML does: with `<`, perhaps after white space."""
    return _LOOKS.match(data) is not None


def root_name(data: bytes) -> str:
    """Return the local name of the root element, read from the first 64 KiB of a document; empty if there is none."""
    head = data[:65_536]
    text = (
        head.decode("utf-16", "replace") if head.startswith(_SIXTEEN) else head.decode("utf-8-sig", "replace")
    )
    found = re.compile(r"<(?:[^\s<>/:!?]+:)?([^\s<>/:!?]+)").match(text, _after_prolog(text))
    return found[1] if found else ""


def parsed(data: bytes, limit: int = SIZE_LIMIT) -> XmlNode:
    """Parse an XML document of at most `limit` bytes. Return its root element, without comments and processing instructions.

    Raise InvalidDescription if the document is malformed, has a document type, or is nested too deep. Raise Rejected if the
    document is too large, or not in UTF-8, UTF-16 or Latin 1.
    """
    if len(data) > limit:
        raise Rejected("DOCUMENT_TOO_LARGE", f"the document has {len(data):,} bytes, more than {limit:,}")
    text = _text(data)
    if text.startswith("<!DOCTYPE", at := _after_prolog(text)):
        line = text.count("\n", 0, at) + 1
        raise unreadable("declares a document type, which is not read", line, "leave <!DOCTYPE out")
    _bound(text)
    return _built(text)


def local(node: XmlNode) -> str:
    """Return the name of an element without its namespace."""
    return str(etree.QName(node).localname)


def namespace(node: XmlNode) -> str:
    """Return the namespace of an element; empty if it has none."""
    return str(etree.QName(node).namespace or "")


def text_of_node(node: XmlNode) -> str:
    """Return the text of an element before its first child, white space included."""
    return str(node.text or "")


def word_of_node(node: XmlNode) -> str:
    """Return the text of an element without the white space around it."""
    return str(node.text or "").strip()


def origin_of(node: XmlNode) -> Origin:
    """Return the name and line of an element in its document, for the loss report."""
    prefix = f"{node.prefix}:" if node.prefix else ""
    return Origin(f"{prefix}{local(node)}", node.sourceline)


def attribute_origin(node: XmlNode, name: str) -> Origin:
    """Return the name and line of an element's attribute in its document, for the loss report."""
    return Origin(f"{origin_of(node).element}@{etree.QName(name).localname}", node.sourceline)


def children(node: XmlNode) -> Iterator[XmlNode]:
    """Yield the child elements of an element."""
    return iter(node)


def _text(data: bytes) -> str:
    if data.startswith(_SIXTEEN):
        return _decoded(data, "utf-16")
    declared = _ENCODING.match(data[:256].decode("latin-1"))
    if declared and declared[1].lower() in _LATIN:
        return _decoded(data, "latin-1")
    return _decoded(data, "utf-8-sig")


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Rejected(
            "NOT_UTF8", f"the document is not in its encoding: byte {error.start}", "save it as UTF-8"
        ) from None


def _after_prolog(text: str) -> int:
    """Return the index of the text after the XML declaration, and after comments and instructions before the root element.

    The time is linear in the text.
    """
    at = 0
    while True:
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]  # an empty match is one
        end = next(
            (close for start, close in (("<!--", "-->"), ("<?", "?>")) if text.startswith(start, at)), ""
        )
        found = text.find(end, at) if end else -1
        if found < 0:
            return at
        at = found + len(end)


def _bound(text: str) -> None:
    # Each element has a < of its own, and each attribute an =.
    if text.count("<") > 2 * ELEMENTS_LIMIT or text.count("=") > ATTRIBUTES_LIMIT:
        raise Rejected(
            "DOCUMENT_TOO_LARGE",
            f"the document has more than {ELEMENTS_LIMIT:,} elements or {ATTRIBUTES_LIMIT:,} attributes",
            "split it",
        )


def _built(text: str) -> XmlNode:
    # The text is encoded anew, so that what the declaration says of its encoding does not count.
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "surrogatepass"), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _malformed(error) from None
    if root is None or root.getroottree().docinfo.doctype:
        raise unreadable("declares a document type, which is not read")
    _check_depth(root)
    return root


def _malformed(error: Exception) -> InvalidDescription:
    said = getattr(error, "msg", "") or str(error)
    return unreadable(f"is not XML: {shown(said, 200)}", getattr(error, "lineno", None))


def _check_depth(root: XmlNode) -> None:
    depth = 0
    for event, node in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > DEPTH_LIMIT:
            raise unreadable(f"is nested deeper than {DEPTH_LIMIT} levels", node.sourceline)
