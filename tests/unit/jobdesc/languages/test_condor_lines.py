from wms.jobdesc.languages.condor_lines import logical_lines


def test_lines_are_joined_and_numbered() -> None:
    text = "# c\n\na \\  \r\n  b\n c \\\n# d\n"
    assert logical_lines(text) == [(3, "a b"), (5, "c d")]
