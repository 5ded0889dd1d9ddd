"""What a fooled pilot tries: a program that is run in a pilot's place, and says as JSON what it reached.

`python fooled_pilot.py '{"root": ..., "sockets": [...], "pids": [...]}'`: a directory that should be hidden, sockets that should
not be there, and processes that should not be within reach.
"""

# What it tries are system calls.
# ruff: noqa: PTH109, PTH111, PTH118, PTH123, PTH208, SIM115

import ctypes
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__)
ORDINARY = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--") if os.geteuid() == 0 else ()
"""What runs a command as an ordinary user, who owns what root owns."""
PTRACE_ATTACH = 16


def can_confine() -> str:
    """Return why pilots cannot be confined on this machine; empty if they can."""
    done = subprocess.run(["unshare", "--user", "--mount", "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "no namespaces here"


def readable(root: str) -> list[str]:
    """Return the files below a directory that can be read, but for those of this pilot and of files by URL."""
    found = []
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            try:
                with open(path, "rb"):
                    found.append(path)
            except OSError:
                continue
    return [each for each in found if not each.startswith((os.getcwd(), f"{root}/files/"))]


def written(directories: list[str]) -> list[str]:
    """Return in which of these directories a file can be made. Whether that is seen outside, the test looks at."""
    found = []
    for directory in directories:
        try:
            Path(directory, "mine").write_text("")
            found.append(directory)
        except OSError:
            continue
    return found


def reached(sockets: list[str], pids: list[int]) -> list[str]:
    """Return which of these sockets take a connection, and which processes can be signalled, traced or looked at."""
    found = []
    for path in sockets:
        with socket.socket(socket.AF_UNIX) as each:
            try:
                each.connect(path)
                found.append(path)
            except OSError:
                pass
    for pid in pids:
        for what, attempt in (
            ("signal", lambda pid=pid: os.kill(pid, 0)),
            ("memory", lambda pid=pid: open(f"/proc/{pid}/mem", "rb")),
            ("files", lambda pid=pid: os.listdir(f"/proc/{pid}/root/")),
            ("environment", lambda pid=pid: open(f"/proc/{pid}/environ", "rb").read()),
        ):
            try:
                attempt()
                found.append(f"{what} of {pid}")
            except OSError:
                pass
        if ctypes.CDLL(None).ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
            found.append(f"trace of {pid}")
    return found


def taken_away(root: str) -> list[str]:
    """Return by which means the cover over a directory was removed."""
    ways = {"umount": ["umount", root], "lazily": ["umount", "-l", root]}
    news = {"here": [], "mounts": ["unshare", "-m"], "user": ["unshare", "-Urm"]}
    found = []
    for new, before in news.items():
        for way, command in ways.items():
            try:
                done = subprocess.run([*before, *command], capture_output=True, check=False)
            except OSError:
                continue
            if done.returncode == 0:
                found.append(f"{way}, {new}")
        done = subprocess.run(
            [*before, "sh", "-c", 'mount --bind / /mnt && ls "/mnt$0/secret" || mount -o remount,rw /', root],
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            found.append(f"bind or remount, {new}")
    return found


def main() -> None:
    """Try all, and print what was reached."""
    told = json.loads(sys.argv[1])
    files, below = readable(told["root"]), sorted(os.listdir(told["root"]))
    written([directory for directory, _, _ in os.walk(told["root"])])
    sys.stdout.write(
        json.dumps(
            {
                "files": files,
                "below": below,
                "writable": written(["/", "/etc", "/usr", "/run", "/home", os.path.expanduser("~")]),
                "reached": reached(told["sockets"], told["pids"]),
                "pids": sum(name.isdigit() for name in os.listdir("/proc")),
                "taken_away": taken_away(told["root"]),
            }
        )
    )


if __name__ == "__main__":
    main()
