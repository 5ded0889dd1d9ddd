"""A plot as SVG, drawn by hand: lines of measured points over a logarithmic axis, light enough to stand in any page."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 46, 46
COLOURS = ("#1f6feb", "#d9730d", "#2da44e", "#8250df")

Points = Sequence[tuple[float, float]]
Place = Callable[[float, float], tuple[float, float]]


def lines(title: str, x_name: str, y_name: str, series: Mapping[str, Points]) -> str:
    """Return the plot of the series, x by powers of ten and y from zero."""
    points = [point for each in series.values() for point in each]
    low, high = (pick(math.log10(x) for x, _ in points) for pick in (min, max))
    step = _step(max(y for _, y in points))
    top = step * math.ceil(max(y for _, y in points) / step)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / ((high - low) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, title, size=15),
        *_grid(at, low, high, top, step),
        _text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8, x_name, anchor="middle"),
        _text(LEFT, TOP - 6, y_name, fill="#57606a"),
    ]
    for colour, (name, each) in zip(COLOURS, series.items(), strict=False):
        parts += _line(colour, name, [at(*point) for point in each])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(most: float) -> float:
    """Return a round distance between lines, of which there are three to seven."""
    power = 10.0 ** math.floor(math.log10(most or 1))
    return next(power * part for part in (0.1, 0.2, 0.5, 1, 2) if most / (power * part) <= 7)


def _grid(at: Place, low: float, high: float, top: float, step: float) -> Iterator[str]:
    for n in range(round(top / step) + 1):
        left, y = at(10**low, n * step)
        yield f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d8dee4"/>'
        yield _text(left - 8, y + 4, f"{n * step:g}", anchor="end", fill="#57606a")
    for power in range(math.ceil(low), math.floor(high) + 1):
        x, y = at(10**power, 0)
        yield f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y + 5:.1f}" stroke="#57606a"/>'
        yield _text(x, y + 19, f"{10**power:,}", anchor="middle", fill="#57606a")


def _line(colour: str, name: str, points: Points) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    x, y = points[-1]
    yield _text(x + 10, y + 4, name, fill=colour)


def _text(
    x: float, y: float, words: str, *, anchor: str = "start", fill: str = "#1f2328", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">'
        f"{escape(words)}</text>"
    )
