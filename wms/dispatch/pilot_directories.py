"""The directories of pilots on a file system that this machine shares with the nodes: one for each pilot, closed to other users."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from wms.dispatch.direct import WORK
from wms.dispatch.port import OUTPUT_LIMIT, PilotOutput, PilotRequest
from wms.files import write_secret
from wms.ids import PilotId

KEPT_DIRECTORIES = 100
"""How many directories of ended pilots are kept for their logs. Older ones are removed."""


class Places:
    """The directories of pilots below `directory`, each with a configuration, a token (mode 0600) and a log."""

    def __init__(self, directory: Path, own: str = "") -> None:
        """Name the directories; `own` is the subdirectory of each with what is the pilot's own: configuration and token."""
        self.directory = directory.absolute()
        self._own = own

    def of(self, pilot_id: PilotId) -> Path:
        """Return the path of a pilot's directory, whether it exists or not."""
        return self.directory / pilot_id

    def make(self, order: PilotRequest) -> Path:
        """Make the directory of a pilot, with its configuration and token, or with a direct job's input files. Return the directory's path.

        Raise OSError if that fails, and also if the directory exists, so that no pilot is sent twice.
        """
        place = self.of(order.pilot_id)
        place.mkdir(parents=True, mode=0o700)
        if order.payload is not None:
            shutil.move(order.payload.inputs, place / WORK)
            return place
        own = self.own_of(order.pilot_id)
        own.mkdir(mode=0o700, exist_ok=True)
        write_secret(own / "token", order.token, durable=False)
        write_secret(own / "config.toml", order.config, durable=False)
        return place

    def own_of(self, pilot_id: PilotId) -> Path:
        """Return the path of the directory with a pilot's configuration and token."""
        return self.of(pilot_id) / self._own

    def log_of(self, pilot_id: PilotId) -> Path:
        """Return the path of the file with a pilot's output."""
        return self.of(pilot_id) / "log"

    def output(self, pilot_id: PilotId, name: str = "log") -> str:
        """Return the end of a pilot's output, or of the file `name` in its directory, as text; empty if there is none."""
        try:
            with (self.of(pilot_id) / name).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - OUTPUT_LIMIT))
                return log.read(OUTPUT_LIMIT).decode("utf-8", "replace")
        except OSError:
            return ""

    def outputs(self, pilot_ids: Iterable[PilotId]) -> list[PilotOutput]:
        """Return the end of each of these pilots' outputs. Pilots without output are absent."""
        read = ((pilot_id, self.output(pilot_id)) for pilot_id in pilot_ids)
        return [PilotOutput(pilot_id=pilot_id, text=text) for pilot_id, text in read if text]

    def drop_token(self, pilot_id: PilotId) -> None:
        """Remove the token of a pilot that has ended. A missing token is no error."""
        (self.own_of(pilot_id) / "token").unlink(missing_ok=True)

    def known(self) -> list[PilotId]:
        """Return the pilots that have directories here, the one with the last changed directory first."""
        if not self.directory.is_dir():
            return []
        found = sorted(self.directory.iterdir(), key=_changed_at, reverse=True)
        # A hidden one is no pilot's (`wms.dispatch.agent_file`).
        return [PilotId(place.name) for place in found if not place.name.startswith(".")]

    def forget(self, pilot_ids: Iterable[PilotId], is_alive: Callable[[PilotId], bool]) -> None:
        """Remove the tokens and working directories of these ended pilots, and old directories of other ended pilots.

        `is_alive` returns whether a pilot still runs. Of all ended pilots' directories, the `KEPT_DIRECTORIES` last changed
        ones stay for their logs.
        """
        for pilot_id in pilot_ids:
            self.drop_token(pilot_id)
            shutil.rmtree(self.of(pilot_id) / WORK, ignore_errors=True)
        ended = [pilot_id for pilot_id in self.known() if not is_alive(pilot_id)]
        for pilot_id in ended[KEPT_DIRECTORIES:]:
            shutil.rmtree(self.of(pilot_id), ignore_errors=True)


def _changed_at(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except FileNotFoundError:
        return 0.0
