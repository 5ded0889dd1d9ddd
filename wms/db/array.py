"""Arrays of texts for the database as one text: a driver looks at each element, a cast in the server is much cheaper."""

from collections.abc import Sequence


def texts(values: Sequence[str]) -> str:
    """Return the literal of an array of texts, for a parameter that is cast as `$1::text::text[]`."""
    if not values:
        return "{}"
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join(each.replace("\\", "\\\\").replace('"', '\\"') for each in values)
    return f'{{"{joined}"}}'
