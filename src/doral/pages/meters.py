"""Bars that say how much of something: drawn by attributes, since pages of a service may hold no looks of their own."""

from __future__ import annotations

from collections.abc import Sequence


def meter(parts: Sequence[tuple[str, float]], *, look: str, mark: float | None = None) -> str:
    """Shares beside each other, each with its look, and a mark where something should be; numbers are said elsewhere.

    >>> meter([("spent", 0.25)], look="track").count("<rect")
    1
    """
    drawn, at = "", 0.0
    for name, size in parts:
        width = min(_percent(size), 100.0 - at)
        drawn += f'<rect class="{name}" x="{at:.2f}" width="{width:.2f}" height="1"/>'
        at += width
    if mark is not None:
        place = min(max(_percent(mark), 0.4), 99.6)
        drawn += f'<line class="planned" x1="{place:.2f}" x2="{place:.2f}" y1="0" y2="1"/>'
    return f'<svg class="{look}" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def _percent(value: float) -> float:
    return 100.0 * min(max(value, 0.0), 1.0)
