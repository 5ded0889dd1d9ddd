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

NETWORK = f"""
import socket, sys
reached = []
port, abstract, *addresses = sys.argv[1:]

def tried(name, act):
    try:
        if act() is not False:
            reached.append(name)
    except OSError:
        pass

def connect(address):
    socket.create_connection((address, int(port)), 3).close()

def bind(address):
    socket.create_server((address, 0)).close()

def hear_of_devices():
    # A new raw or packet socket would hear what passes by.
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)

def ask_for_a_name():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(("192.0.2.1", 53))

tried("loopback", lambda: connect("127.0.0.1"))
tried("loopback by IPv6", lambda: connect("::1"))
tried("a name", lambda: socket.getaddrinfo("wms.invalid", 80))
tried("a name server", ask_for_a_name)
tried("packets", hear_of_devices)
tried("a server's abstract socket", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + abstract))
for address in addresses:
    tried(f"connected to {{address}}", lambda: connect(address))
    tried(f"bound to {{address}}", lambda: bind(address))
{_END}
"""
"""Arguments: the port of a server of the node on all its addresses, the name of an abstract socket, addresses of the node."""
