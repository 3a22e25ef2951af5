"""Figures as files, PNG and PDF, and as drawings in a page; the same bytes from the same numbers."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

PNG_DOTS_PER_INCH = 160
_POINTS_PER_INCH = 72
# Without dates and program versions, which would make every file a new one.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def as_files(figures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Every figure as PNG and as PDF: the content of the files by their names."""
    return {f"{name}.{kind}": as_bytes(figure, kind) for name, figure in figures.items() for kind in _METADATA}


def as_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the content of one file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=PNG_DOTS_PER_INCH, metadata=_METADATA[kind])
    return buffer.getvalue()


def as_data(png: bytes) -> str:
    """A picture as an address that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


# Colours of a drawing that follow the page, in light and in dark (`shell.css`); all others are seen on both.
_OF_PAGE = {
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#d9d9d9": "var(--line)",  # of `simulation.results.plots.clean`
    "#0072b2": "var(--colour-1)",
    "#d55e00": "var(--colour-2)",
    "#009e73": "var(--colour-3)",
    "#cc79a7": "var(--colour-4)",
}


def as_markup(figure: Figure, *, name: str, alt: str) -> str:
    """A figure as SVG inside a page: one drawing, whose colours are those of the page in light and in dark."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    # Without what is for files: a description, and a style that would be that of the whole page.
    drawn = re.sub(r"<(metadata|style)\b.*?</\1>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(r"#[0-9a-f]{6}\b", lambda found: _OF_PAGE.get(found[0], found[0]), drawn)
    # Several drawings share a page: what they name is theirs.
    drawn = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", drawn)
    inside = drawn[drawn.index(">") + 1 :]
    width, height = figure.get_size_inches() * _POINTS_PER_INCH
    return f'<svg class="drawing" role="img" aria-label="{escape(alt)}" viewBox="0 0 {width:g} {height:g}">{inside}'
