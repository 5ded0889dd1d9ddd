"""Lines of HTCondor's files, as HTCondor joins them."""


def logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with their numbers (from 1), trimmed; continued lines are joined, comments and blank lines left out.

    A line goes on in the next one if it ends with a backslash, blanks after it aside. A comment within it is left out.
    """
    found, held, first = list[tuple[int, str]](), "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        line = raw.strip()
        if not first and (not line or line.startswith("#")):
            continue
        first = first or number
        # HTCondor leaves the last character of a comment within a continued line.
        held += line[-1] if line.startswith("#") else line
        if held.endswith("\\"):
            held = held[:-1]
            continue
        found.append((first, held))
        held, first = "", 0
    return [*found, (first, held)] if held.strip() else found
