"""The keys that are pressed, one by one, while a command shows something live."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator

_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


@contextlib.contextmanager
def keys(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Queue[str]]:
    """Yield a queue of keys as they are pressed; the terminal is as it was afterwards. Nothing comes where there is none."""
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
    """Return the keys of what a terminal sent: a character each, but for sequences such as those of arrows."""
    return [key.replace("\x1bO", "\x1b[") for key in _KEY.findall(text)]
