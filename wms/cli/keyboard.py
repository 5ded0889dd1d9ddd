"""Single keys from the terminal, read while a command shows a live view."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator

_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


@contextlib.contextmanager
def keys(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Queue[str]]:
    """Yield a queue of pressed keys in a `with` block, and restore the terminal at its end. Without a terminal the queue stays empty."""
    import termios
    import tty

    typed: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield typed
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def read() -> None:
        for key in split(os.read(fd, 1_024).decode("utf-8", "replace")):
            typed.put_nowait(key)

    tty.setcbreak(fd)
    loop.add_reader(fd, read)
    try:
        yield typed
    finally:
        loop.remove_reader(fd)
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def split(text: str) -> list[str]:
    """Return the single keys in a terminal's input. A control sequence, such as that of an arrow, is one key."""
    return [key.replace("\x1bO", "\x1b[") for key in _KEY.findall(text)]
