"""Write llms.txt, an index of the pages for language models, and llms-full.txt, all pages as one text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from staging import PAGES, ROOT, SITE

COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def sections() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections of the navigation, each with the titles and files of its pages."""
    project: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    for section in project["nav"]:
        ((title, pages),) = section.items()
        yield title, [next(iter(page.items())) for page in pages]


def first_sentence(text: str) -> str:
    """Return the first sentence of a page after its title, without links and emphasis."""
    for paragraph in COMMENT.sub("", text).split("\n\n"):
        if paragraph.strip() and not paragraph.startswith(("#", "|", "`", "!", ":")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
            return re.split(r"(?<=[.?])\s", plain)[0]
    return ""


def write_llms(site: Path = SITE) -> None:
    """Write both files into the site."""
    index, whole = ["# DORAL", "", "> Spend a limited budget well when answers come back late, or never."], []
    for title, pages in sections():
        index += ["", f"## {title}", ""]
        for name, file in pages:
            text = (PAGES / file).read_text(encoding="utf-8")
            sentence = first_sentence(text)
            index.append(f"- [{name}]({file.removesuffix('.md')}.html)" + (f": {sentence}" if sentence else ""))
            if file != "changes.md":
                whole.append(f"<!-- {file} -->\n{COMMENT.sub('', text).strip()}")
    (site / "llms.txt").write_text("\n".join(index) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")
