"""A drawing as text: shapes are added, `svg` gives the file. The same shapes give the same bytes.

A drawing brings its own light ground: it is read as it is, whether the page around it is light or dark.
"""

from __future__ import annotations

from html import escape

INK, SOFT, FAINT, GROUND = "#1f2933", "#52606d", "#cbd2d9", "#fbfaf7"
BLUE, ORANGE, GREEN, RED, PURPLE = "#1d5fa8", "#b45309", "#1f7a4d", "#b3261e", "#6b3fa0"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def number(value: float) -> str:
    """Two decimals at most, none where there are none."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Sheet:
    """Shapes on a ground of the given size; the title is what is read aloud."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []
        self.heads: list[str] = []  # colours of which an arrow's head is needed

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        colour: str = SOFT,
        *,
        width: float = 1.5,
        dash: str = "",
        arrow: bool = False,
    ) -> None:
        self.path(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", colour, width=width, dash=dash, arrow=arrow)

    def path(
        self, d: str, colour: str = SOFT, *, width: float = 1.5, dash: str = "", arrow: bool = False, fill: str = "none"
    ) -> None:
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        if arrow:
            if colour not in self.heads:
                self.heads.append(colour)
            extra += f' marker-end="url(#head{self.heads.index(colour)})"'
        self.shapes.append(f'<path d="{d}" fill="{fill}" stroke="{colour}" stroke-width="{number(width)}"{extra}/>')

    def curve(
        self, points: list[tuple[float, float]], colour: str, *, width: float = 2.5, dash: str = "", steps: bool = False
    ) -> None:
        words = [f"M{number(points[0][0])} {number(points[0][1])}"]
        for x, y in points[1:]:
            words.append(f"H{number(x)}V{number(y)}" if steps else f"L{number(x)} {number(y)}")
        self.path("".join(words), colour, width=width, dash=dash)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "#ffffff",
        edge: str = SOFT,
        round_: float = 8,
        thick: float = 1.5,
    ) -> None:
        self.shapes.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'rx="{number(round_)}" fill="{fill}" stroke="{edge}" stroke-width="{number(thick)}"/>'
        )

    def dot(self, x: float, y: float, radius: float, fill: str, edge: str = "none") -> None:
        self.shapes.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" '
            f'stroke="{edge}" stroke-width="1.5"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 14,
        colour: str = INK,
        at: str = "middle",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.shapes.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{colour}" '
            f'text-anchor="{at}"{weight}>{escape(words)}</text>'
        )

    def svg(self) -> str:
        heads = "".join(
            f'<marker id="head{i}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
            for i, colour in enumerate(self.heads)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" font-family="{FONT}">\n'
            f"<title>{escape(self.title)}</title>\n"
            + (f"<defs>{heads}</defs>\n" if heads else "")
            + f'<rect width="{self.width}" height="{self.height}" rx="10" fill="{GROUND}"/>\n'
            + "\n".join(self.shapes)
            + "\n</svg>\n"
        )
