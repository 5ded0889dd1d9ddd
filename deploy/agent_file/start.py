# ruff: noqa: ANN001, ANN201, PTH100, PTH120, UP031
"""Starts the job agent from its one file: looks whether the node's Python can run it, and leaves the rest to newer code.

It is the file's `__main__.py`, and is read by any Python from 2.7 on, so that an old one says what is missing.
"""

import json
import os
import platform
import sys
import zipfile

UNFIT = 69
"""The exit code on a node whose Python or system cannot run the agent (`EX_UNAVAILABLE` of sysexits.h)."""


def unfit(pythons, machine, glibc):
    # type: (list[str], str, list[int]) -> str
    """Return why this node cannot run the agent, which needs one of the `pythons` on such a `machine`; empty if it can."""
    here = "%d.%d" % tuple(sys.version_info[:2])
    if here not in pythons:
        return "it needs Python %s, and %s is %s" % (" or ".join(pythons), sys.executable, here)
    if platform.python_implementation() != "CPython" or "t" in sys.abiflags:
        return "it needs the usual CPython, and %s is another" % sys.executable
    if sys.platform != "linux" or platform.machine() != machine:
        return "it needs Linux on %s, and this is %s" % (machine, platform.platform())
    name, version = platform.libc_ver()
    if name != "glibc" or [int(each) for each in version.split(".")[:2]] < glibc:
        wanted = "%d.%d" % tuple(glibc)
        return "it needs glibc %s or later, and this is %s %s" % (wanted, name or "another", version)
    return ""


def main():
    # type: () -> None
    """Run the agent with the arguments of this process, or say in one line why it cannot run, and exit with code 69."""
    here = os.path.dirname(os.path.abspath(__file__))
    with zipfile.ZipFile(here) as archive:
        facts = json.loads(archive.read("facts.json").decode("ascii"))
    why = unfit(facts["pythons"], facts["machine"], facts["glibc"])
    if why:
        sys.stderr.write("job_agent: this node cannot run the agent: %s\n" % why)
        sys.exit(UNFIT)
    from deploy.agent_file.unpacking import run_agent

    run_agent(here, facts["digest"])


if __name__ == "__main__":
    main()
