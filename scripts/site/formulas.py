"""Markdown for the site: `$...$` and `$$...$$` become MathML while building, doctests become code, headings get the
anchors of GitHub.

Browsers draw MathML by themselves: no script, no font, nothing is fetched.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

# As on GitHub: a formula touches its dollars, and no digit follows, so that "$5 and $6" stays money.
INLINE = r"(?<![\\$\w])\$(?![\s$])((?:\\.|[^\\$\n\x02])+?)(?<!\s)\$(?![\d$])([,.;:)]*)"
BLOCK = re.compile(r"^\$\$\s*(.+?)\s*\$\$$", re.DOTALL)
BARS = ("|", "\u2016")
PRIME = "\u2032"
_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


class UnreadableFormula(ValueError):
    """A formula that cannot be drawn ends the build."""


def mathml(tex: str, *, display: str = "inline") -> str:
    """The formula as text of MathML; words that the converter leaves as they are end the build."""
    made = convert(tex, display=display)
    left = re.findall(r"\\[a-zA-Z]+", made)
    if left:
        raise UnreadableFormula(f"{left[0]} of ${tex}$ has no MathML: write it in another way")
    return made


def _element(tex: str, display: str) -> ElementTree.Element:
    made = ElementTree.fromstring(mathml(tex, display=display))
    for part in made.iter():
        part.tag = part.tag.removeprefix(_NAMESPACE)
        if part.tag == "mo" and part.text in BARS:  # which side they stand on is not told: no stretching, no room
            part.attrib.update(stretchy="false", lspace="0", rspace="0")
        if part.tag == "msup" and part[1].text == PRIME:  # the letter is a raised one already
            part.tag, part[1].tag = "mrow", "mo"
            part[1].tail = None
            part[1].attrib.update(lspace="0", rspace="0")
    made.set("xmlns", _NAMESPACE[1:-1])
    return made


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # type: ignore[override]  # noqa: N802
        # Stashed as text: other patterns must not look for emphasis in it.
        made = ElementTree.tostring(_element(m.group(1), "inline"), encoding="unicode")
        if m.group(2):  # no line ends between a formula and the comma behind it
            made = f'<span class="unbroken">{made}{m.group(2)}</span>'
        return self.md.htmlStash.store(made), m.start(0), m.end(0)


class _Block(BlockProcessor):
    def test(self, parent: ElementTree.Element, block: str) -> bool:
        return BLOCK.match(block.strip()) is not None

    def run(self, parent: ElementTree.Element, blocks: list[str]) -> None:
        found = BLOCK.match(blocks.pop(0).strip())
        assert found is not None
        place = ElementTree.SubElement(parent, "div", {"class": "formula"})
        place.text = self.parser.md.htmlStash.store(
            ElementTree.tostring(_element(found.group(1), "block"), encoding="unicode")
        )


class _Doctests(Preprocessor):
    """`>>> ...` and what it prints, up to the next empty line, as code; Markdown would make quotations of it."""

    def run(self, lines: list[str]) -> list[str]:
        made: list[str] = []
        is_code = is_fenced = False
        for line in lines:
            is_fenced ^= line.startswith("```")
            if not is_code and not is_fenced and line.startswith(">>> "):
                made += ["", "```pycon"]
                is_code = True
            elif is_code and not line.strip():
                made.append("```")
                is_code = False
            made.append(line)
        return [*made, "```"] if is_code else made


class Formulas(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Doctests(md), "doctests", 29)  # before fences are looked for (25)
        # After code in backticks (190), before backslashes are taken as escapes (180).
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", 185)
        md.parser.blockprocessors.register(_Block(md.parser), "formula", 95)


def makeExtension(**options: Any) -> Formulas:  # noqa: N802
    return Formulas(**options)


def anchor(heading: str, separator: str = "-") -> str:
    """As GitHub makes it of a heading: links to sections work in both places."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def anchor_maker() -> Callable[[str, str], str]:
    return anchor
