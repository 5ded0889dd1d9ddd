"""The directories of pilots on a file system that we share with them: one a pilot, closed to others."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from wms.dispatch.port import OUTPUT_LIMIT, Output, PilotRequest
from wms.files import write_secret
from wms.ids import PilotId

KEPT_DIRECTORIES = 100
"""Directories of ended pilots that stay for their logs; the oldest go first."""


class Places:
    """Below `directory` each pilot has a directory with its configuration, its token (0600) and its log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def of(self, pilot_id: PilotId) -> Path:
        """Return where a pilot's directory is, or would be."""
        return self.directory / pilot_id

    def make(self, order: PilotRequest) -> Path:
        """Make the directory of a pilot. Raises OSError, also if there was one: no pilot is sent twice."""
        place = self.of(order.pilot_id)
        place.mkdir(parents=True, mode=0o700)
        write_secret(place / "token", order.token, durable=False)
        write_secret(place / "config.toml", order.config, durable=False)
        return place

    def log_of(self, pilot_id: PilotId) -> Path:
        """Return the file that takes what a pilot prints."""
        return self.of(pilot_id) / "log"

    def output(self, pilot_id: PilotId, name: str = "log") -> str:
        """Return the end of what a pilot printed, or of another file in its directory; or nothing."""
        try:
            with (self.of(pilot_id) / name).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - OUTPUT_LIMIT))
                return log.read(OUTPUT_LIMIT).decode("utf-8", "replace")
        except OSError:
            return ""

    def outputs(self, pilot_ids: Iterable[PilotId]) -> list[Output]:
        """Return the ends of what pilots printed; those that left nothing are left out."""
        read = ((pilot_id, self.output(pilot_id)) for pilot_id in pilot_ids)
        return [Output(pilot_id=pilot_id, text=text) for pilot_id, text in read if text]

    def drop_token(self, pilot_id: PilotId) -> None:
        """Take the token of a pilot that has ended, should it not have taken it itself."""
        (self.of(pilot_id) / "token").unlink(missing_ok=True)

    def known(self) -> list[PilotId]:
        """Return the pilots that have directories, those first that changed last."""
        if not self.directory.is_dir():
            return []
        found = sorted(self.directory.iterdir(), key=_changed_at, reverse=True)
        return [PilotId(place.name) for place in found]

    def forget(self, pilot_ids: Iterable[PilotId], is_alive: Callable[[PilotId], bool]) -> None:
        """Take the tokens of pilots that have ended, and remove all but the latest directories of any that do not live."""
        for pilot_id in pilot_ids:
            self.drop_token(pilot_id)
        ended = [pilot_id for pilot_id in self.known() if not is_alive(pilot_id)]
        for pilot_id in ended[KEPT_DIRECTORIES:]:
            shutil.rmtree(self.of(pilot_id), ignore_errors=True)


def _changed_at(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except FileNotFoundError:
        return 0.0
