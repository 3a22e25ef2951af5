"""A drawing in its frame: a title, what to see in it, the drawing for wide screens and for phones, and its legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from doral.pages.svg import Drawing

WIDE, NARROW = 580.0, 350.0  # pixels


@dataclass(frozen=True)
class Key:
    """A line of a legend."""

    words: str
    look: str


def framed(
    *,
    name: str,
    title: str,
    sees: str,
    says: str,
    keys: Sequence[Key],
    draw: Callable[[float], Drawing],
    notes: Sequence[str] = (),
) -> str:
    """HTML. `sees` is what to see in it, `says` the same for whoever cannot see, `notes` what numbered marks are."""
    drawings = "".join(
        draw(width).svg(id=f"{name}-{look}", title=title, says=says, look=look)
        for width, look in ((WIDE, "wide"), (NARROW, "narrow"))
    )
    legend = "".join(f"<li>{_sample(one.look)}{escape(one.words)}</li>" for one in keys)
    listed = f'<ul class="legend">{legend}</ul>' if legend else ""
    if notes:
        listed += f'<ol class="changes">{"".join(f"<li>{escape(one)}</li>" for one in notes)}</ol>'
    return (
        f'<div class="shown" id="figure-{name}"><h3>{escape(title)}</h3><p>{escape(sees)}</p>'
        f"<figure>{drawings}{listed}</figure></div>"
    )


def _sample(look: str) -> str:
    kind = look.split()[0]
    shape = (
        f'<rect class="{look}" x="0" y="1" width="22" height="10"/>'
        if kind in ("area", "bar")
        else f'<line class="{look}" x1="0" x2="22" y1="6" y2="6"/>'
    )
    return f'<svg class="key" viewBox="0 0 22 12" aria-hidden="true">{shape}</svg>'
