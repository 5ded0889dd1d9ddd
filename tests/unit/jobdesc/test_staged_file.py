"""Files by URL on the wire."""

import msgspec

from wms.jobdesc.staged_file import InputFile, OutputFile


def test_what_is_not_known_of_a_file_is_not_sent() -> None:
    assert msgspec.json.encode(InputFile(name="a", sources=("file:///a",))) == (
        b'{"name":"a","sources":["file:///a"]}'
    )
    assert msgspec.json.encode(OutputFile(name="a", targets=("file:///a",), optional=True)) == (
        b'{"name":"a","targets":["file:///a"],"optional":true}'
    )
