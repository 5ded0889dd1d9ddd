"""The program of the demonstration's jobs, which needs only Python: counts tokens, or adds up such counts.

token_count.py count NAME DIRECTORY    counts the sources below DIRECTORY into counts.json
token_count.py merge DIRECTORY         adds up all *.json below DIRECTORY into merged.json
"""

import json
import sys
import token
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COUNTS, MERGED = "counts.json", "merged.json"

Counts = dict[str, Any]


def count(name: str, sources: Iterable[Path]) -> Counts:
    """Count the files, lines and tokens of each type in Python sources. `name` is put into the result."""
    tokens: Counter[str] = Counter()
    files = lines = 0
    for path in sources:
        files += 1
        with path.open("rb") as file:
            for each in tokenize.tokenize(file.readline):
                tokens[token.tok_name[each.type]] += 1
        # The last token is the end of the file, which is on the line after the last.
        lines += each.start[0] - 1
    return {"name": name, "files": files, "lines": lines, "tokens": dict(sorted(tokens.items()))}


def merge(counts: Iterable[Counts]) -> Counts:
    """Add up several results of `count`. The result has the names of all of them."""
    tokens: Counter[str] = Counter()
    files = lines = 0
    names = []
    for each in counts:
        names.append(each["name"])
        files += each["files"]
        lines += each["lines"]
        tokens.update(each["tokens"])
    return {"names": sorted(names), "files": files, "lines": lines, "tokens": dict(sorted(tokens.items()))}


def main(arguments: list[str]) -> None:
    """Run the command in the arguments, `count` or `merge`, and write its result into the current directory."""
    match arguments:
        case ["count", name, directory]:
            result, target = count(name, sorted(Path(directory).rglob("*.py"))), COUNTS
        case ["merge", directory]:
            parts = sorted(Path(directory).rglob("*.json"))
            result, target = merge(json.loads(path.read_text("utf-8")) for path in parts), MERGED
        case _:
            sys.exit(__doc__)
    Path(target).write_text(json.dumps(result, indent=1), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
