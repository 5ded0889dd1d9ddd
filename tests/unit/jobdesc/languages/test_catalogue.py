import pytest

from tests.unit.jobdesc.descriptions import of
from wms.errors import Rejected
from wms.jobdesc.languages import catalogue


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (b'{"executable": "x"}', "json"),
        (b'\n[{"executable": "x"}]', "json"),
        (b'# mine\n\nexecutable = "x"', "toml"),
        (b'[[jobs]]\nexecutable = "x"', "toml"),
    ],
)
def test_a_document_is_recognised_by_its_content(document: bytes, name: str) -> None:
    found = catalogue.language_of(document)
    assert found is not None
    assert found.name == name
    assert catalogue.translate(document).jobs() == [of(executable="x")]


def test_what_is_in_no_language_is_not_recognised() -> None:
    assert catalogue.language_of(b"\x7fELF") is None
    assert catalogue.language_of(b"#!/bin/sh\necho hello\n") is None


@pytest.mark.parametrize("name", catalogue.writable())
def test_what_is_written_is_read_as_the_same(name: str) -> None:
    description = of(arguments=("a b", 'c"d\n'), environment={"A": "ä{}"}, name="n")
    document = catalogue.write([description], name).whole().encode()
    assert catalogue.translate(document).jobs() == [description]


def test_an_unknown_language_cannot_be_written() -> None:
    with pytest.raises(Rejected, match="use one of"):
        catalogue.write([of()], "klingon")
