"""Files that are written whole, and TOML that is read as it was written."""

import json
import stat
from pathlib import Path
from typing import Any

from wms import files


def test_toml_reads_back_as_it_was_written() -> None:
    import tomllib

    table: dict[str, Any] = {
        "name": 'quote " back \\ tab \t del \x7f ümlaut',
        "list": ["a", "b c"],
        "a key": 1,
        "*": {"every VO": {"*": 2}},
        "part": {"n": 3, "x": 0.5, "yes": True},
        "parts": [{"a": "1"}, {"a": "2", "b": [], "within": {"c d": 1, "deeper": {"e": ["f"]}, "none": {}}}],
    }
    assert tomllib.loads(files.to_toml(table)) == table


def test_a_key_with_dots_names_a_table_in_a_table() -> None:
    import tomllib

    assert tomllib.loads(files.to_toml({"a.b": {"c": 1}})) == {"a": {"b": {"c": 1}}}


def test_secret_file_replaces_the_old_one_whole(tmp_dir: Path) -> None:
    path = tmp_dir / "secret"
    path.write_text("old, open to all")
    path.chmod(0o644)
    files.write_secret(path, json.dumps({"token": "x"}))
    assert json.loads(path.read_text()) == {"token": "x"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
