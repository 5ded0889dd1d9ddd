"""What a signal that ended a program says about it, in words for its user."""

import signal
from collections.abc import Mapping
from typing import Final

EXIT_CODE_OF_SIGNAL: Final = 128
"""What shells add to the number of the signal that ended a program, to make their own exit code."""
OF_MEMORY: Final = frozenset({signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})
"""The signals that a program may get for lack of memory."""
_HINTS: Final[Mapping[int, str]] = {
    signal.SIGKILL: "the kernel does that when the node's memory runs out, and batch systems at their limits",
    signal.SIGABRT: "it gave up by itself, as after a failed assertion, or without memory",
    signal.SIGSEGV: "it reached for memory that is not its own, or its stack was full",
    signal.SIGBUS: "its memory could not be read or written, as when a disk is full",
    signal.SIGILL: "it has instructions that this processor lacks",
    signal.SIGFPE: "it divided by zero, or reckoned out of range",
    signal.SIGXCPU: "it used more CPU time than a limit of the node allows",
    signal.SIGXFSZ: "it wrote a file larger than a limit of the node allows",
}


def signal_of_exit_code(code: int) -> int:
    """Return the number of the signal that a shell's exit code stands for; 0 if it stands for none that has a name."""
    number = code - EXIT_CODE_OF_SIGNAL
    return number if number in set(signal.Signals) else 0


def signal_name(number: int) -> str:
    """Return a signal as `signal 9 (SIGKILL)`; without its name if it has none."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def signal_hint(number: int) -> str:
    """Return what usually causes a signal, as the end of a sentence after a colon; empty if that is not known."""
    hint = _HINTS.get(number, "")
    return f": {hint}" if hint else ""
