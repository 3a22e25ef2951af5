"""Looks at every built page as a reader would, and says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a page makes the browser fetch something, other than links that a reader follows.
FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
# What the tool itself writes, and no page links to.
ALONE = {"404.html"}


@dataclass
class Page(HTMLParser):
    """What a page links to, what it fetches, and the anchors that it has."""

    path: Path
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    text: list[str] = field(default_factory=list)
    _inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "name" in values:
            self.anchors.add(values["name"])
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag in FETCHED and FETCHED[tag] in values:
            self.fetched.append(values[FETCHED[tag]])
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev", "edit"):
            self.fetched.append(values.get("href", ""))
        if tag in ("script", "style", "code", "pre", "math"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text.append(data)


def _leads(page: Path, site: Path, target: str) -> tuple[Path | None, str]:
    parts = urlsplit(target)
    if not parts.path:
        return page, unquote(parts.fragment)
    there = (
        site / parts.path.lstrip("/") if parts.path.startswith("/") else page.parent / unquote(parts.path)
    ).resolve()
    if there.is_dir():
        there = there / "index.html"
    return (there if there.is_file() else None), unquote(parts.fragment)


def _outside(target: str) -> bool:
    return "://" in target or target.startswith(("//", "mailto:", "data:", "javascript:"))


def complaints(site: Path) -> list[str]:
    """Every link, image and anchor that leads nowhere; orphans; what would be fetched from elsewhere; raw formulas."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    return [
        *_broken(pages, site.resolve()),
        *_orphans(pages, site.resolve()),
        *_raw(pages, site.resolve()),
        *_styles(site),
    ]


def _broken(pages: dict[Path, Page], site: Path) -> Iterator[str]:
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.fetched:
            if target.startswith("data:"):
                continue
            if _outside(target):
                yield f"{name}: fetches {target}"
            elif _leads(path, site, target)[0] is None:
                yield f"{name}: {target} is not there"
        for target in page.links:
            if _outside(target):
                continue
            there, section = _leads(path, site, target)
            if there is None:
                yield f"{name}: the link {target} leads nowhere"
            elif section and there in pages and section not in pages[there].anchors and section != "__top":
                yield f"{name}: the link {target} names a section that is not there"


def _orphans(pages: dict[Path, Page], site: Path) -> Iterator[str]:
    """Pages that cannot be reached from the first one by following links."""
    seen, ahead = set(), [site / "index.html"]
    while ahead:
        path = ahead.pop()
        if path in seen or path not in pages:
            continue
        seen.add(path)
        ahead += [
            there for target in pages[path].links if not _outside(target) and (there := _leads(path, site, target)[0])
        ]
    for path in sorted(set(pages) - seen):
        if str(path.relative_to(site)) not in ALONE:
            yield f"{path.relative_to(site)}: no page leads there"


def _raw(pages: dict[Path, Page], site: Path) -> Iterator[str]:
    """TeX, references and directives that were meant to become something else."""
    raw = re.compile(
        r"\$[^$\s](?:[^$\n]*[^$\s])?\$(?![\d$])|\\(?:frac|sum|log|sqrt|hat|theta|tau|le|ge)\b|^::: |\]\[\]|--8<--",
        re.MULTILINE,
    )
    for path, page in pages.items():
        found = raw.search("".join(page.text))
        if found:
            yield f"{path.relative_to(site)}: {found.group(0)[:60]!r} is left as it was written"


def _styles(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.css")):
        for target in re.findall(r"""url\(\s*["']?(https?:|//)[^)]*\)|@import\s+["']https?:""", path.read_text()):
            yield f"{path.relative_to(site)}: fetches {target}"
