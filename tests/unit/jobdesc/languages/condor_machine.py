"""The machine on which the tests' documents are submitted."""

from datetime import UTC, datetime

from wms.errors import Rejected
from wms.jobdesc.languages.submit_machine import FoundName, SubmitMachine

FILES = {"items.txt": "one 1\n\n# no\ntwo 2\n", "more.sub": "v = included\n"}


def _text(path: str) -> str:
    if path not in FILES:
        raise Rejected("NO_SUCH_FILE", f"cannot read {path}")
    return FILES[path]


MACHINE = SubmitMachine(
    environment={"HOME": "/home/me", "MY_A": "1", "WMS_TOKEN": "secret"},
    text=_text,
    matching=lambda _: [FoundName("a.dat", is_directory=False), FoundName("d.dat", is_directory=True)],
    draw=lambda _: 0,
    now=datetime.fromtimestamp(77, UTC),
)
