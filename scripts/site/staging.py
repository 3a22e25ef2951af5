"""Brings the pages of the site together: docs/, and what lies in the root of the repository.

Pages are written for readers of the repository, where `../CHANGELOG.md` and `../src/doral/x.py` lead somewhere. On the
site the first is a page, and the second is a name: there is no file behind it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from generated import API, MARKER, filled

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
# What is a page although it lies outside docs/.
FROM_ROOT = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(^```.*?^```$|^~~~.*?^~~~$)", re.DOTALL | re.MULTILINE)


def page_of(path: Path) -> Path | None:
    """Where a file of the repository lies among the pages; None if it is none of them."""
    inside = path.relative_to(ROOT)
    if str(inside) in FROM_ROOT:
        return PAGES / FROM_ROOT[str(inside)]
    return PAGES / inside.relative_to("docs") if inside.parts[0] == "docs" else None


def links_for_the_site(text: str, source: Path, page: Path) -> str:
    """The text of a page with its links as they are among the pages."""

    def changed(found: re.Match[str]) -> str:
        words, target = found.groups()
        path, _, section = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return found.group(0)
        there = (source.parent / path).resolve()
        if not there.is_relative_to(ROOT) or not there.exists():
            return found.group(0)  # the build complains about it
        new = page_of(there)
        if new is None or there.suffix != ".md":
            if new is not None and there.is_file():
                return found.group(0)
            name = f"`{there.relative_to(ROOT)}{'/' if there.is_dir() else ''}`"
            plain = words.strip("`")
            return name if plain.rstrip("/") in name else f"{words} ({name})"
        relative = Path(os.path.relpath(new, page.parent)).as_posix()
        return f"[{words}]({relative}{'#' + section if section else ''})"

    parts = CODE.split(text)
    return "".join(part if CODE.match(part) else LINK.sub(changed, part) for part in parts)


def sources() -> dict[Path, Path]:
    """Every file that the site is made of, and where it lies among the pages."""
    found = {path: PAGES / path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*"))}
    kept = {path: page for path, page in found.items() if path.is_file() and path.suffix not in (".py", ".pyc")}
    outside = {ROOT / name: PAGES / page for name, page in FROM_ROOT.items() if name != "README.md"}
    return kept | outside


def stage() -> None:
    """Writes what has changed since the last time, and removes what is gone."""
    wanted = sources()
    for path in sorted(PAGES.rglob("*")) if PAGES.exists() else []:
        if path.is_file() and path not in wanted.values() and path != PAGES / API:
            path.unlink()
    for source, page in wanted.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            if not page.exists() or page.stat().st_mtime < source.stat().st_mtime:
                shutil.copy2(source, page)
            continue
        text = links_for_the_site(source.read_text(), source, page)
        if MARKER.search(text):
            text = filled(text)
        if not page.exists() or page.read_text() != text:
            page.write_text(text)
