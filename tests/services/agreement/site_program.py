"""A site's own program for tests, which keeps its reservations in a file: so many CPUs at a time, first come, first served."""

import json
import stat
import sys
from datetime import datetime
from pathlib import Path

PROGRAM = """#!{python}
import json, sys, datetime, os, pathlib, time
CPUS, kept = {cpus}, pathlib.Path({kept!r})
held = json.loads(kept.read_text()) if kept.exists() else {{}}
asked = json.load(sys.stdin)
when = datetime.datetime.fromisoformat
answer = {{}}
if asked["action"] == "list":
    answer = {{"reservations": [{{k: v for k, v in each.items() if k != "cpus"}} for each in held.values()]}}
elif asked["action"] == "release":
    held.pop(asked["name"], None)
    answer = {{"released": True}}
elif asked["name"] in held:
    answer = {{"start_at": held[asked["name"]]["start_at"]}}
else:
    length = datetime.timedelta(seconds=asked["seconds"])
    starts = [when(asked["first_start"])] + sorted(when(each["ends_at"]) for each in held.values())
    def free(start):
        changes = [start] + [when(each["start_at"]) for each in held.values()]
        return all(
            sum(e["cpus"] for e in held.values() if when(e["start_at"]) <= at < when(e["ends_at"])) + asked["cpus"] <= CPUS
            for at in changes if start <= at < start + length
        )
    good = [s for s in starts if when(asked["first_start"]) <= s <= when(asked["last_start"]) and free(s)]
    if good:
        held[asked["name"]] = {{"name": asked["name"], "cpus": asked["cpus"], "start_at": good[0].isoformat(),
                               "ends_at": (good[0] + length).isoformat()}}
        answer = {{"start_at": good[0].isoformat()}}
    else:
        answer = {{"reason": "all is taken"}}
new = kept.with_name(f"new-{{os.getpid()}}")
new.write_text(json.dumps(held))
new.rename(kept)
while kept.with_name("waits").exists():
    time.sleep(0.01)
if not kept.with_name("silent").exists():
    print(json.dumps(answer))
"""


class SiteProgram:
    """The program, its file, and how it misbehaves."""

    def __init__(self, directory: Path, cpus: int) -> None:
        self._directory = directory
        self._kept = directory / "kept.json"
        text = PROGRAM.format(python=sys.executable, cpus=cpus, kept=str(self._kept))
        self.path = program(directory, text)

    def held(self) -> dict[str, datetime]:
        """Return the starts of what it has reserved, by name."""
        held = json.loads(self._kept.read_text()) if self._kept.exists() else {}
        return {name: datetime.fromisoformat(each["start_at"]) for name, each in held.items()}

    def remove(self, name: str) -> None:
        """Remove a reservation as an administrator of the site does."""
        held = json.loads(self._kept.read_text())
        del held[name]
        self._kept.write_text(json.dumps(held))

    def _set(self, name: str, *, there: bool) -> None:
        flag = self._directory / name
        flag.touch() if there else flag.unlink(missing_ok=True)

    @property
    def is_silent(self) -> bool:
        """Whether it does what it is told, and prints nothing."""
        return (self._directory / "silent").exists()

    @is_silent.setter
    def is_silent(self, value: bool) -> None:
        self._set("silent", there=value)

    @property
    def waits(self) -> bool:
        """Whether it does what it is told, and does not end."""
        return (self._directory / "waits").exists()

    @waits.setter
    def waits(self, value: bool) -> None:
        self._set("waits", there=value)


def program(directory: Path, text: str) -> Path:
    path = directory / "decide"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
