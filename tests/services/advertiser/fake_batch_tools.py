"""A fake of the tools by which PBS and LSF tell of queues and nodes, which no package brings here: it prints files.

    python fake_batch_tools.py TOOL ARGUMENTS...

`qstat -Q -f` and `pbsnodes -a` print `FAKE_DATA/pbs/FLAVOUR-{queues,nodes}.txt`, `bqueues` and `bhosts` `FAKE_DATA/lsf/*.json`. A tool that is
called in another way than theirs fails, and writes down how it was called.
"""

import os
import sys
from pathlib import Path

TOOLS = ("qstat", "pbsnodes", "bqueues", "bhosts")
AWAY = {
    "qstat": (111, "qstat: cannot connect to server away (errno=111) Connection refused"),
    "pbsnodes": (111, "pbsnodes: cannot connect to server away, error=111 (Connection refused)"),
    "bqueues": (255, "LSF is down. Please wait ..."),
    "bhosts": (255, "LSF is down. Please wait ..."),
}


def told(tool: str, arguments: list[str]) -> Path | None:
    """Return the file that answers a call; None for a call that the real tool would not take."""
    data, flavour = Path(os.environ["FAKE_DATA"]), os.environ.get("FAKE_FLAVOUR", "torque")
    match tool, arguments:
        case "qstat", ["-Q", "-f"]:
            return data / "pbs" / f"{flavour}-queues.txt"
        case "pbsnodes", ["-a"] | ["-a", "-s", _]:
            return data / "pbs" / f"{flavour}-nodes.txt"
        case "bqueues", ["-o", fields, "-json", *_] if "queue_name" in fields.split():
            return data / "lsf" / "bqueues.json"
        case "bhosts", ["-o", fields, "-json", *names] if "host_name" in fields.split():
            return data / "lsf" / ("bhosts-batch.json" if names == ["batch"] else "bhosts.json")
    return None


def main(tool: str, arguments: list[str]) -> int:
    if "away" in (os.environ.get("PBS_DEFAULT"), os.environ.get("LSF_ENVDIR")):
        code, complaint = AWAY[tool]
        sys.stderr.write(complaint + "\n")
        return code
    file = told(tool, arguments)
    if file is None:
        sys.stderr.write(f"{tool}: the fake was called in another way: {arguments}\n")
        return 2
    sys.stdout.write(file.read_text())
    return 0


def install(place: Path, data: Path, flavour: str = "torque") -> None:
    """Put the fake's tools into `place`, with what they print."""
    place.mkdir(parents=True, exist_ok=True)
    for tool in TOOLS:
        script = place / tool
        told_by = f'FAKE_DATA="{data}" FAKE_FLAVOUR="{flavour}"'
        script.write_text(f'#!/bin/sh\n{told_by} exec "{sys.executable}" -I "{__file__}" {tool} "$@"\n')
        script.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
