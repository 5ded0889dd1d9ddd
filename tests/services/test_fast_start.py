"""Services load no library that their configuration may never use: each such costs a tenth of a second at every start."""

import subprocess
import sys

import pytest

NEITHER = ("gateway", "resource_broker", "agreement", "advertiser", "pilot_submitter")
WITHOUT = {"numpy": NEITHER, "aiohttp": (*NEITHER, "job_manager", "matcher")}


@pytest.mark.parametrize("library", WITHOUT)
def test_what_takes_long_is_loaded_where_it_is_used(library: str) -> None:
    code = "import sys\n" + "".join(
        f"import services.{each}.service, services.{each}.config\nprint({each!r} if {library!r} in sys.modules else '')\n"
        for each in WITHOUT[library]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
