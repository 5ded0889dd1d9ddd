"""The filter of system calls, evaluated as the kernel does, for each kind of processor."""

import errno
import struct

import pytest

from services.job_agent.payload.seccomp import (
    ARCHITECTURES,
    FREES_SPACE,
    NEW_USER,
    OWN_FILES,
    REFUSED,
    REFUSED_WITH,
    THREAD,
    program,
)

KILLED, ALLOWED = 0x80000000, 0x7FFF0000
KINDS = list(enumerate(ARCHITECTURES.values()))
I386 = 0x40000003


def answer(kind: int, number: int, *arguments: int, architecture: int, clone3: bool = True) -> int:
    """Return what the filter says of a call: KILLED, ALLOWED, or the number of an error."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *given)
    steps = list(struct.iter_unpack("HBBI", program(kind, clone3=clone3)))
    at, value = 0, 0
    while True:
        code, if_so, if_not, operand = steps[at]
        match code:
            case 0x20:
                value = int.from_bytes(data[operand : operand + 4], "little")
                at += 1
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
                at += 1 + (if_so if holds else if_not)
            case _:
                return int(operand & 0xFFFF if operand & 0xFFFF0000 == 0x00050000 else operand)


@pytest.mark.parametrize(("kind", "architecture"), KINDS)
def test_each_refused_call_ends_with_its_error(kind: int, architecture: int) -> None:
    for numbers, error in REFUSED.values():
        assert answer(kind, numbers[kind], architecture=architecture) == error
    clone3 = REFUSED["clone3"][0][kind]
    assert answer(kind, clone3, architecture=architecture, clone3=False) == ALLOWED


@pytest.mark.parametrize(("kind", "architecture"), KINDS)
def test_arguments_decide_of_some_calls(kind: int, architecture: int) -> None:
    number = {name: entry[0][kind] for name, entry in REFUSED_WITH.items()}
    sigchld, keep_size, zero_range = 17, 1, 16
    for call in ("clone", "unshare"):
        assert answer(kind, number[call], NEW_USER | sigchld, architecture=architecture) == errno.EPERM
        assert answer(kind, number[call], NEW_USER | 1 << 40, architecture=architecture) == errno.EPERM
        assert answer(kind, number[call], sigchld, architecture=architecture) == ALLOWED
    assert answer(kind, number["semget"], 0, 256, architecture=architecture) == errno.EINVAL
    assert answer(kind, number["semget"], 0, 255, architecture=architecture) == ALLOWED
    shared = THREAD | OWN_FILES  # which clone takes for shared files
    assert answer(kind, number["clone"], shared, architecture=architecture) == ALLOWED
    assert answer(kind, number["clone"], shared | NEW_USER, architecture=architecture) == errno.EPERM
    assert answer(kind, number["clone"], THREAD, architecture=architecture) == errno.EPERM
    assert answer(kind, number["unshare"], OWN_FILES, architecture=architecture) == errno.EPERM
    for taking in (0, keep_size, zero_range):
        found = answer(kind, number["fallocate"], 5, taking, architecture=architecture)
        assert found == errno.EOPNOTSUPP
    for freeing in (0x02 | keep_size, 0x08, 0x20):
        assert freeing & FREES_SPACE
        assert answer(kind, number["fallocate"], 5, freeing, architecture=architecture) == ALLOWED


@pytest.mark.parametrize(("kind", "architecture"), KINDS)
def test_no_second_set_of_calls_is_a_way_around(kind: int, architecture: int) -> None:
    assert answer(kind, 0, architecture=architecture) == ALLOWED
    assert answer(kind, 0, architecture=I386) == KILLED
    assert answer(kind, 0x40000000 | 272, NEW_USER, architecture=architecture) == errno.ENOSYS
