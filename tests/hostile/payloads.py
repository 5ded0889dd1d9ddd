"""Programs of hostile jobs. Each is Python source, prints what it reached, one line each, and exits with NOTHING if that was nothing."""

NOTHING = 7

_END = f"""
print("\\n".join(reached))
sys.exit(0 if reached else {NOTHING})
"""

READ = f"""
import os, socket, sys
reached = []
here = os.getcwd()

def listed(path):
    # The way to its own directory is there, and nothing beside it.
    above = path.rstrip("/") + "/"
    way = here.removeprefix(above).split("/")[0] if here.startswith(above) else ""
    return set(os.listdir(path)) - {{way}}

for number, path in enumerate(sys.argv[1:]):
    for look in (listed, lambda path: open(path, "rb").read(1)):
        try:
            if look(path):
                reached.append(path)
        except OSError:
            pass
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        reached.append(path)
    except OSError:
        pass
    # Whoever collects the outputs may read what this program may not.
    os.symlink(path, f"link-{{number}}")
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if int(pid) != os.getpid() and b"TOKEN" in open(f"/proc/{{pid}}/environ", "rb").read():
            reached.append(f"the environment of {{pid}}")
    except OSError:
        pass
{_END}
"""
"""Arguments: paths of files, directories and sockets that are not its own."""

KILL = f"""
import ctypes, os, signal, sys
reached = []
libc = ctypes.CDLL(None)
PTRACE_ATTACH = 16
for pid in map(int, sys.argv[1:]):
    if pid == os.getpid():
        continue
    if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
        reached.append(f"traced {{pid}}")
    try:
        open(f"/proc/{{pid}}/mem", "rb").read(1)
        reached.append(f"the memory of {{pid}}")
    except OSError:
        pass
    for target in (pid, -pid):
        try:
            os.kill(target, signal.SIGKILL)
            reached.append(f"killed {{target}}")
        except OSError:
            pass
try:
    os.kill(-1, signal.SIGKILL)  # all that it may signal but itself
except OSError:
    pass
{_END}
"""
"""Arguments: pids on the node of agents, shepherds and services."""

WRITE = f"""
import os, sys
reached = []
name = sys.argv[1]
for directory in sys.argv[2:]:
    try:
        with open(os.path.join(directory, name), "w") as file:
            file.write("x")
        reached.append(directory)
    except OSError:
        pass
for path in ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/oom_score_adj"):
    try:
        open(path, "w").write("1")
        reached.append(path)
    except OSError:
        pass
{_END}
"""
"""Arguments: the name of a file, and directories that are not its own."""

LEAVE_BEHIND = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
        os._exit(0)
"""
"""Argument: for how many seconds its daemons sleep."""

FILL_DISK = """
import os, sys, time
while True:
    with open("full", "ab") as file:
        file.write(bytes(4 << 20))
    time.sleep(0.02)
"""

FILL_MEMORY = """
import sys, time
kept = []
while True:
    kept.append(b"x" * (8 << 20))
    time.sleep(0.02)
"""

IGNORE_SIGNALS = """
import os, signal, sys, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
while True:
    time.sleep(1)
"""

FLOOD = """
import os, sys
while True:
    os.write(1, b"x" * 65_536)
    os.write(2, b"x" * 65_536)
"""

FORK = """
import os, sys
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
