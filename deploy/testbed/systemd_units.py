"""The units of systemd in a machine of the testbed: one service that runs a script, and what users' managers of services need."""

from pathlib import Path
from typing import Final

UNIT: Final = "wms-machine.service"
"""The name of the service that runs the script."""
_INSTALLED: Final = Path("/usr/lib/systemd/system")
_KEPT: Final = (".target", ".slice")
"""The endings of the units that the machine has although targets want them: they start nothing by themselves."""

_SERVICE: Final = """\
[Unit]
DefaultDependencies=no
Requires=dbus.service
After=dbus.service
[Service]
Type=exec
ExecStart=/bin/sh {script}
TimeoutStartSec=infinity
"""
# Of PAM's sessions only the directory is needed.
_MANAGER: Final = """\
[Service]
PAMName=
Environment=XDG_RUNTIME_DIR=/run/user/%i
"""
_RUNTIME_DIRECTORY: Final = """\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=install -d -o %i -m 700 /run/user/%i
"""


def write(directory: Path, script: str) -> None:
    """Write the units for a machine that runs `script`, a path in the machine, to `directory`, which is made.

    Units that targets of the installed system want are masked: they would look for devices, disks and logs.
    """
    directory.mkdir()
    for name in _wanted():
        (directory / name).symlink_to("/dev/null")
    (directory / UNIT).write_text(_SERVICE.format(script=script))
    (directory / "user@.service.d").mkdir()
    (directory / "user@.service.d" / "machine.conf").write_text(_MANAGER)
    (directory / "user-runtime-dir@.service").write_text(_RUNTIME_DIRECTORY)


def _wanted() -> set[str]:
    names = {each.name for each in _INSTALLED.glob("*.wants/*")}
    return {name for name in names if not name.endswith(_KEPT) and not name.startswith("dbus.")}
