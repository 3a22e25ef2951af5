"""Drawings as inline SVG: axes, lines, bands and bars in the colours of the page they stand on.

Words stand only outside the frame (numbers of the axes, names of marks), each in a place of its own, so that they never
run into each other whatever is drawn; what lines mean is said by a legend beside the drawing. A drawing is made for a
width: a page holds one for wide screens and one for phones, in which letters have the same size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from doral.pages.names import columns, short

LINE = 16.0  # from one line of words to the next
_GAP = 8.0  # between words beside each other
_TICK_WIDTH = 62.0  # pixels, that numbers of an axis want at least


@dataclass(frozen=True, kw_only=True)
class Axis:
    """From where to where an axis goes, and which values are named on it."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    name: str = ""


def nice_axis(
    low: float, high: float, *, most: int, words: Callable[[float], str] = "{:,.6g}".format, name: str = ""
) -> Axis:
    """An axis over at least this range, with at most so many round numbers.

    >>> nice_axis(0.0, 97.0, most=6).ticks[-1]
    (100.0, '100')
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        low, high = (0.0, 1.0) if not math.isfinite(low) else (min(low, 0.0), max(low, 0.0) or 1.0)
    step = _step((high - low) / max(1, most - 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    values = [round(i * step, 12 - math.floor(math.log10(step))) for i in range(first, last + 1)]
    return Axis(low=values[0], high=values[-1], ticks=tuple((one, words(one)) for one in values), name=name)


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= least * (1.0 - 1e-9)), 10.0 * power)


def most_ticks(width: float) -> int:
    """As many as have room beside each other."""
    return max(2, int(width / _TICK_WIDTH))


@dataclass(frozen=True)
class Mark:
    """A value of the horizontal axis that has a name."""

    at: float
    name: str
    look: str = "mark"


class Drawing:
    """A frame with axes; whatever is added is drawn in its order."""

    def __init__(
        self,
        *,
        width: float,
        height: float,
        x: Axis,
        y: Axis,
        marks: Sequence[Mark] = (),
        left: float = 24.0,
        right: float = 14.0,
    ) -> None:
        """`left` and `right` are what the frame leaves free at its sides; the numbers of the axis find room anyway."""
        self.width, self.height, self.x_axis, self.y_axis = width, height, x, y
        widest = max((width_of(words) for _, words in y.ticks), default=0.0)
        self.left = max(left, widest + 8.0)
        self.right = width - right
        shown = [one for one in marks if x.low <= one.at <= x.high]
        self._labels = _placed([one for one in shown if one.name], self._x_of, self.left, width)
        rows = max((row for _, _, _, row in self._labels), default=-1) + 1
        self.top = 10.0 + (LINE if y.name else 0.0) + rows * LINE
        self.bottom = height - 22.0 - (LINE if x.name else 0.0)
        self._parts: list[str] = []
        self._draw_axes()
        self._draw_marks(shown)

    def _x_of(self, value: float) -> float:
        span = self.x_axis.high - self.x_axis.low
        return self.left + (self.right - self.left) * (value - self.x_axis.low) / span

    def x(self, value: float) -> float:
        """Where a value lies, in pixels; what is beyond the frame lies on its edge."""
        return min(max(self._x_of(value), self.left), self.right)

    def y(self, value: float) -> float:
        span = self.y_axis.high - self.y_axis.low
        at = self.bottom - (self.bottom - self.top) * (value - self.y_axis.low) / span
        return min(max(at, self.top), self.bottom)

    def add(self, part: str) -> None:
        self._parts.append(part)

    def line(self, points: Iterable[tuple[float, float]], look: str) -> None:
        self.add(f'<polyline class="{look}" points="{self._points(points)}"/>')

    def area(self, upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], look: str) -> None:
        """What lies between two lines."""
        if upper and lower:
            self.add(f'<polygon class="{look}" points="{self._points([*upper, *reversed(lower)])}"/>')

    def bar(self, low: float, high: float, value: float, look: str, title: str) -> None:
        """From one value of the horizontal axis to another, up (or down) from zero."""
        x, width = self.x(low), max(1.0, self.x(high) - self.x(low))
        top, bottom = sorted((self.y(value), self.y(0.0)))
        self.add(
            f'<rect class="{look}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{max(bottom - top, 0.5):.1f}"><title>{escape(title)}</title></rect>'
        )

    def _points(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def _draw_axes(self) -> None:
        for value, words in self.y_axis.ticks:
            y = self.y(value)
            self.add(f'<line class="grid" x1="{self.left:.1f}" x2="{self.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self.add(label(words, self.left - 6.0, y + 4.0, "end"))
        if self.y_axis.name:
            self.add(label(self.y_axis.name, 2.0, 12.0, "start", "axis"))
        end = -math.inf
        for value, words in self.x_axis.ticks:
            x, half = self._x_of(value), width_of(words) / 2.0
            if x > self.right + 1.0:
                continue
            self.add(
                f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom:.1f}" y2="{self.bottom + 4:.1f}"/>'
            )
            middle = min(max(x, half + 1.0), self.width - half - 1.0)
            if middle - half < end + _GAP:
                continue  # there is no room for it
            end = middle + half
            self.add(label(words, middle, self.bottom + 18.0, "middle"))
        if self.x_axis.name:
            self.add(label(self.x_axis.name, self.right, self.height - 6.0, "end", "axis"))

    def _draw_marks(self, marks: Sequence[Mark]) -> None:
        """Lines, and above the frame their names, as far as there is room."""
        for one in marks:
            x = self.x(one.at)
            self.add(
                f'<line class="{one.look}" x1="{x:.1f}" x2="{x:.1f}" y1="{self.top - 3:.1f}" y2="{self.bottom:.1f}">'
                f"{f'<title>{escape(one.name)}</title>' if one.name else ''}</line>"
            )
        above = LINE if self.y_axis.name else 0.0
        for words, x, anchor, row in self._labels:
            self.add(label(words, x, above + 12.0 + row * LINE, anchor))

    def svg(self, *, id: str, title: str, says: str, look: str = "") -> str:  # noqa: A002  (as HTML calls it)
        """The drawing; `says` is what it shows, for screen readers."""
        body = "".join(self._parts)
        return (
            f'<svg class="drawing {look}" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-labelledby="{id}-title {id}-desc"><title id="{id}-title">{escape(title)}</title>'
            f'<desc id="{id}-desc">{escape(says)}</desc>{body}</svg>'
        )


def label(words: str, x: float, y: float, anchor: str = "start", look: str = "") -> str:
    """Words in a drawing."""
    kind = f' class="{look}"' if look else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def fitting(words: str, width: float) -> str:
    """Words in so many pixels."""
    shown = short(words, max(3, int(width / _NARROW)))
    while width_of(shown) > width and columns(shown) > 3:
        shown = short(words, columns(shown) - 1)
    return shown


# Pixels that letters take at the size of the drawings, in a font that is wider than most.
_NARROW, _USUAL, _WIDE = 5.0, 7.7, 12.5


def width_of(words: str) -> float:
    """How wide words are, in pixels; rather too many."""
    return sum(map(_width_of, words))


def _width_of(one: str) -> float:
    if one in "ijl.,:;'|!ftrI()[] -":
        return _NARROW
    if one in "mwMW@%" or not one.isascii():
        return _WIDE if columns(one) else 0.0
    return 9.5 if one.isupper() else _USUAL


_MOST_ROWS = 3  # of names of marks, above each other


def _placed(
    marks: Sequence[Mark], x_of: Callable[[float], float], left: float, width: float
) -> list[tuple[str, float, str, int]]:
    """(words, x, anchor, row) of those names that find room; the others keep their line, and stand elsewhere."""
    ends = [left - _GAP] * _MOST_ROWS
    found: list[tuple[str, float, str, int]] = []
    for one in sorted(marks, key=lambda mark: mark.at):
        words = fitting(one.name, width - left - 2.0)
        x, wide = x_of(one.at), width_of(words)
        start = min(max(x - wide / 2.0, left), width - wide - 1.0)
        row = next((i for i, end in enumerate(ends) if start >= end + _GAP), None)
        if row is None:
            continue
        ends[row] = start + wide
        found.append((words, start, "start", row))
    return found
