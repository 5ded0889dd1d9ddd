"""The units of a machine whose init is systemd: which run, and where the command is."""

from pathlib import Path

import pytest

from deploy.testbed import systemd_units
from deploy.testbed.kernel_machine import lack, run

pytestmark = pytest.mark.testbed


@pytest.mark.skipif(bool(lack(systemd=True)), reason=f"NO SYSTEMD IN MACHINES HERE: {lack(systemd=True)}")
def test_the_command_is_in_a_service_and_nothing_else_runs() -> None:
    script = "cat /proc/self/cgroup; systemctl list-units --no-legend --plain --type=service; exit 7"
    ran = run(["sh", "-c", script], systemd=True)
    assert ran.code == 7
    cgroup, *services = ran.output.splitlines()
    assert cgroup == f"0::/system.slice/{systemd_units.UNIT}"
    assert [line.split()[0] for line in services] == ["dbus.service", systemd_units.UNIT]


def test_what_installed_targets_want_is_masked(tmp_path: Path) -> None:
    systemd_units.write(tmp_path / "units", "/a/script")
    assert "ExecStart=/bin/sh /a/script" in (tmp_path / "units" / systemd_units.UNIT).read_text()
    masked = {each.name for each in (tmp_path / "units").iterdir() if each.is_symlink()}
    assert not [name for name in masked if name.endswith((".target", ".slice")) or name.startswith("dbus.")]
