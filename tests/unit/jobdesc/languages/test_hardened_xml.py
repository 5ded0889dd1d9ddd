import pytest

from wms.errors import Rejected
from wms.jobdesc.languages import hardened_xml
from wms.jobdesc.languages.hardened_xml import parsed, root_name
from wms.jobdesc.problem import InvalidDescription

BOMB = b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        b"<?xml version='1.0'?>\n<!-- a comment -->\n" + BOMB,
        b"\xef\xbb\xbf" + BOMB,
        BOMB.decode().encode("utf-16"),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    ],
)
def test_a_document_type_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidDescription) as refusal:
        parsed(document)
    assert "document type" in refusal.value.problems[0].message


@pytest.mark.parametrize(
    "document", [b"", b"<a>", b"<a>&b;</a>", b"<a>\0</a>", b"text", b"<a/><b/>", b"<a b='1' b='2'/>"]
)
def test_malformed_documents_are_refused_with_their_line(document: bytes) -> None:
    with pytest.raises(InvalidDescription) as refusal:
        parsed(document)
    assert "not XML" in refusal.value.problems[0].message
    assert refusal.value.problems[0].line == 1


def test_depth_is_bounded() -> None:
    assert parsed(b"<a>" * 64 + b"</a>" * 64) is not None
    with pytest.raises(InvalidDescription) as refusal:
        parsed(b"<a>" * 65 + b"</a>" * 65)
    assert "deeper" in refusal.value.problems[0].message
    with pytest.raises(InvalidDescription):
        parsed(b"<a>" * 100_000 + b"</a>" * 100_000)


@pytest.mark.parametrize(
    "document",
    [
        b"<a>" + b" " * hardened_xml.SIZE_LIMIT + b"</a>",
        b"<a>" + b"<b/>" * (2 * hardened_xml.ELEMENTS_LIMIT) + b"</a>",
        b"<a " + b"b='' " * (hardened_xml.ATTRIBUTES_LIMIT + 1) + b"/>",
    ],
    ids=["bytes", "elements", "attributes"],
)
def test_size_is_bounded_before_parsing(document: bytes) -> None:
    with pytest.raises(Rejected, match="DOCUMENT_TOO_LARGE"):
        parsed(document)


def test_encodings() -> None:
    assert parsed("<?xml version='1.0' encoding='UTF-16'?><a>ä</a>".encode("utf-16")).text == "ä"
    assert parsed("<?xml version='1.0' encoding='ISO-8859-1'?><a>ä</a>".encode("latin-1")).text == "ä"
    assert parsed("<a>ä</a>".encode()).text == "ä"
    with pytest.raises(Rejected, match="NOT_UTF8"):
        parsed("<a>ä</a>".encode("latin-1"))


def test_comments_leave_the_text_whole() -> None:
    assert parsed(b"<a>x<!-- y -->z<?p i?></a>").text == "xz"


def test_the_name_of_the_root_is_found_in_the_head() -> None:
    assert root_name(b"<?xml version='1.0'?>\n<!-- <b> -->\n<j:JobDefinition xmlns:j='x'>") == "JobDefinition"
    assert root_name(b"<a>") == "a"
    assert root_name(b"none") == ""
    assert root_name(b"<!-- " + b"x" * 100_000) == ""
