"""The system calls that isolated payloads may not make: a filter in the kernel (seccomp(2)), which no process can take off.

Containers load this module by its path, so it has no dependencies. What needs a capability is not in the list: payloads have
none, and without a user namespace of their own they get none. So they mount nothing and enter no namespace.

The filter is a program of classic BPF. Its instructions are eight bytes: a code, how many to skip if a comparison holds and
if not, and a number. It sees the number of the call, the kind of processor, and the arguments as numbers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

NEW_USER = 0x10000000
"""The flag of clone(2) and unshare(2) for a new user namespace, in which a process would have all capabilities."""
OWN_FILES, THREAD = 0x400, 0x10000
"""The flag of clone(2) for shared files, with which unshare(2) ends that, and the one for a thread. A thread with files of its own
would hide them: what a process has open is looked at in its first thread.
"""
FREES_SPACE = 0x02 | 0x08 | 0x20
"""The flags of fallocate(2) that punch, cut out or move a part of a file. Other calls take space on disk in no time at all."""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "ppc64le": 0xC0000015}
"""The kernel's number (AUDIT_ARCH) for each kind of processor for which the numbers of the calls are known."""
_X32 = 0x40000000
"""Calls of x32, a second set on x86_64, have this bit. On other processors no call has such a number."""

REFUSED = {
    # The kernel's own answer where there is no such call makes programs go on without it.
    "clone3": (
        (435, 435, 435),
        errno.ENOSYS,
    ),  # its flags are out of a filter's sight; the C library then takes clone
    "io_uring_setup": ((425, 425, 425), errno.ENOSYS),  # makes calls that no filter sees
    "io_uring_enter": ((426, 426, 426), errno.ENOSYS),
    "io_uring_register": ((427, 427, 427), errno.ENOSYS),
    "memfd_secret": ((447, 447, 447), errno.ENOSYS),  # memory that the agent cannot count
    # Keyrings belong to the user and not to the job.
    "add_key": ((248, 217, 269), errno.ENOSYS),
    "request_key": ((249, 218, 270), errno.ENOSYS),
    "keyctl": ((250, 219, 271), errno.ENOSYS),
    # What the kernel gives to privileged users alone, on many machines.
    "bpf": ((321, 280, 361), errno.EPERM),
    "perf_event_open": ((298, 241, 319), errno.EPERM),
    "userfaultfd": ((323, 282, 364), errno.EPERM),
    "syslog": ((103, 116, 103), errno.EPERM),
    # Takes descriptors of other jobs: the far end of any socket tells its process.
    "pidfd_getfd": ((438, 438, 438), errno.EPERM),
}
"""The refused calls: their numbers by the order of ARCHITECTURES, and the error that they end with."""
REFUSED_WITH = {
    "clone": ((56, 220, 120), 0, NEW_USER, 0, errno.EPERM),
    "thread": ((56, 220, 120), 0, THREAD, OWN_FILES, errno.EPERM),
    "unshare": ((272, 97, 282), 0, NEW_USER | OWN_FILES, 0, errno.EPERM),
    # Sets of more semaphores than most programs need: the kernel allows each to take 2 MiB of it, and nobody counts that.
    "semget": ((64, 190, 393), 1, 0xFFFFFF00, 0, errno.EINVAL),
    # As on a file system without it. The C library's posix_fallocate then writes, which the agent sees in time.
    "fallocate": ((285, 47, 309), 1, 0, FREES_SPACE, errno.EOPNOTSUPP),
}
"""The calls that are refused if an argument has one of the first bits, if there are any, and none of the second: numbers,
argument, bits, bits, error."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_SECCOMP_CALLS = (317, 277, 358)
_SET_FILTER, _KEEP_SPEED = 1, 4
"""The operation of seccomp(2), and its flag by which kernels before 5.16 do not slow the process down against Spectre."""
_instruction = struct.Struct("HBBI")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def program(kind: int, *, clone3: bool) -> bytes:
    """Return the filter for a kind of processor, by its place in ARCHITECTURES, as the kernel takes it.

    A call of another kind of processor, such as of 32 bits, ends the process with SIGSYS. Without `clone3` that call is allowed.
    """
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, list(ARCHITECTURES.values())[kind]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for name, (numbers, error) in REFUSED.items():
        if clone3 or name != "clone3":
            steps += [(_EQUAL, 0, 1, numbers[kind]), (_RETURN, 0, 0, _ERROR | error)]
    for numbers, argument, has_one, has_none, error in REFUSED_WITH.values():
        steps += [
            (_LOAD, 0, 0, _NUMBER_AT),
            (_EQUAL, 0, 4 if has_one else 3, numbers[kind]),
            (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument),  # its lower half
            *([(_ANY_BIT, 0, 2, has_one)] if has_one else []),
            (_ANY_BIT, 1, 0, has_none),
            (_RETURN, 0, 0, _ERROR | error),
        ]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_instruction.pack(*step) for step in steps)


def refuse(*, clone3: bool) -> None:
    """Refuse these calls to this process and all that it starts, for good. It must have given up new privileges before.

    Without `clone3` that call is allowed: a container forks by it into a cgroup. Raise OSError if the kernel has no filters, or
    the calls of this kind of processor are not known.
    """
    if platform.machine() not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, "no system calls are known of this kind of machine")
    kind = list(ARCHITECTURES).index(platform.machine())
    code = program(kind, clone3=clone3)
    given = _Program(len(code) // _instruction.size, code)
    libc = ctypes.CDLL(None, use_errno=True)
    call = ctypes.c_long(_SECCOMP_CALLS[kind])
    if libc.syscall(call, _SET_FILTER, _KEEP_SPEED, ctypes.byref(given)):
        number = ctypes.get_errno()
        raise OSError(number, f"system calls cannot be refused: {os.strerror(number)}")
