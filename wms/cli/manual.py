"""`wms man`: manual pages of every command, made from the texts of --help."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from wms import __version__
from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import show, show_json
from wms.cli.session import OK

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 100_000
"""The width in characters of an imaginary terminal, in which no line of a help text is broken."""
_OPTION = re.compile(r"  (\S[^:]*): ?(.*)")
_TITLE = re.compile(r"[A-Z][A-Za-z ]+:")


def man(
    *,
    to: Annotated[Path, Parameter(show_default=lambda _: "man1")] = Path("man1"),
    common: CommonOptions = USUAL,
) -> int:
    """Write the manual pages of all commands.

    For example:
      wms man --to ~/.local/share/man/man1
      wms man --to man1 && man -l man1/wms-submit.1

    Parameters
    ----------
    to
        The directory to write them to.
    """
    from wms.errors import Rejected

    written = []
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name, text in pages():
            (to / f"{name}.1").write_text(text, "utf-8")
            written.append(f"{name}.1")
    except OSError as error:
        raise Rejected("BAD_FILE", f"cannot write {to}: {error.strerror}", "--to names a directory") from None
    show_json({"to": str(to), "pages": written}) if common.json else show(f"{len(written)} pages in {to}")
    return OK


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each manual page, such as `wms-submit`."""
    from wms.cli.app import COMMANDS, app_for

    yield "wms", page(("wms",), _help(app_for([]), ()))
    for _, name, _, _ in COMMANDS:
        app = app_for([name])
        yield f"wms-{name}", page(("wms", name), _help(app, (name,)))
        for below in _below(app[name]):
            yield f"wms-{name}-{below}", page(("wms", name, below), _help(app, (name, below)))


def _below(command: App) -> list[str]:
    return [name for name in command if not name.startswith("-")]


def _help(app: App, words: tuple[str, ...]) -> str:
    out = io.StringIO()
    app.help_formatter = "plain"
    app.help_print(list(words), console=_console(out))
    return out.getvalue()


def _console(out: io.StringIO) -> "Console":
    from rich.console import Console

    return Console(file=out, width=WIDE, force_terminal=False, highlight=False)


def page(words: tuple[str, ...], told: str) -> str:
    """Return the manual page of the command `words` in roff. `told` is the command's --help text."""
    name = "-".join(words)
    usage, _, rest = told.strip().partition("\n")
    lines = [line.rstrip() for line in rest.strip().splitlines()]
    summary = lines[0] if lines else ""
    parts = [
        f'.TH "{name.upper()}" 1 "" "wms {__version__}" "User Commands"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary.removesuffix('.'))}",
        ".SH SYNOPSIS",
        f".B {_escaped(usage.removeprefix('Usage: '))}",
        ".SH DESCRIPTION",
        *_body(lines),
    ]
    if len(words) > 1:
        parts += [".SH SEE ALSO", f"{_escaped('-'.join(words[:-1]))}(1)"]
    return "\n".join(parts) + "\n"


def _body(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a help text as roff: paragraphs, examples verbatim, options and commands with their descriptions."""
    literal = False
    for line in lines:
        option = _OPTION.fullmatch(line)
        if literal and not line.startswith("  "):
            literal = False
            yield ".fi"
        if _TITLE.fullmatch(line):
            yield f".SH {line.removesuffix(':').upper()}"
            literal = line in ("For example:", "Examples:", "Exit codes:")
            if literal:
                yield ".nf"
        elif literal:
            yield _escaped(line)
        elif option is not None:
            yield from (".TP", f".B {_escaped(option[1])}", _escaped(option[2]))
        else:
            yield _escaped(line.strip()) if line else ".PP"
    if literal:
        yield ".fi"


def _escaped(text: str) -> str:
    """Return a text escaped for roff."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
