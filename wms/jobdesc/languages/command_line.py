"""Command lines as one text: they are split into arguments as a shell would do, without expanding anything."""

import re

_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^\s"'\\]+)|(\s+)|(.)""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


_QUIET = re.compile(r"'[^']*'|\\.", re.DOTALL)


def needs_a_shell(text: str) -> bool:
    """Return whether a shell would do more with a command line than to split it: expand, redirect, or run several commands."""
    return any(each in _QUIET.sub("", text) for each in "$`;&|<>*?")


def arguments(text: str) -> list[str]:
    """Return the arguments of a command line, which are separated by blanks.

    Blanks within quotes or after a backslash do not separate. A quote that is not closed is an ordinary character.
    """
    found, current = list[str](), ""
    begun = False
    for part in _PART.finditer(text):
        double, single, escaped, plain, blank, stray = part.groups()
        if blank is not None:
            found += [current] if begun else []
            current, begun = "", False
            continue
        piece = _ESCAPED.sub(r"\1", double) if double is not None else single
        current += next(each for each in (piece, escaped, plain, stray) if each is not None)
        begun = True
    return [*found, current] if begun else found


def condor_arguments(text: str) -> list[str] | None:
    """Return the arguments of a command line in HTCondor's new syntax; None if the text is not in this syntax.

    In the new syntax the whole text is in double quotes, blanks within single quotes do not separate, and a quote in an argument is doubled.
    """
    whole = text.strip()
    if len(whole) < 2 or whole[0] != '"' or whole[-1] != '"':
        return None
    inner = whole[1:-1].replace('""', '"')
    found, current, begun = list[str](), "", False
    for part in re.finditer(r"'((?:[^']|'')*)'|([^\s']+)|(\s+)|(')", inner):
        quoted, plain, blank, stray = part.groups()
        if blank is not None:
            found += [current] if begun else []
            current, begun = "", False
            continue
        current += quoted.replace("''", "'") if quoted is not None else plain or stray
        begun = True
    return [*found, current] if begun else found
