"""Brings the pages of the gallery up to date: each shows a program of examples/, what it prints, and its picture.

`make gallery` runs all of them, `python scripts/gallery.py coupons` one. The words of a page are written by hand, in
docs/gallery/; what stands between `<!-- program -->`, `<!-- printed -->` or `<!-- cards -->` and `<!-- end -->` is
written here. tests/test_examples.py says where a page is behind.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs" / "gallery"
PICTURES = ROOT / "docs" / "img" / "gallery"
COLUMNS = 2  # of cards
# The order in which the gallery shows them.
ORDER = (
    "clinic_kits",
    "coupons",
    "call_backs",
    "border_tests",
    "urgent_tiers",
    "slow_bad_news",
    "live_campaign",
    "own_policy",
    "ablation",
)


def filled(text: str, part: str, content: str) -> str:
    """The text of a page with one of its parts replaced."""
    marks = re.compile(rf"(?<=<!-- {part} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if not marks.search(text):
        sys.exit(f"no part '<!-- {part} -->' that ends with '<!-- end -->'")
    return marks.sub(lambda _: f"\n{content}\n\n", text, count=1)


def block(language: str, lines: str) -> str:
    return f"```{language}\n{lines.rstrip()}\n```"


def run(name: str) -> str:
    """What the program prints; its picture is kept."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        PICTURES.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / f"{name}.png", PICTURES)
    return done.stdout


def refresh(name: str) -> None:
    page = PAGES / f"{name}.md"
    text = filled(page.read_text(), "printed", block("text", run(name)))
    page.write_text(filled(text, "program", block("python", (EXAMPLES / f"{name}.py").read_text())))
    print(page.relative_to(ROOT))


def card(name: str) -> str:
    """A picture with a sentence, and where they lead: from the first lines of the page."""
    text = (PAGES / f"{name}.md").read_text()
    title, sentence = re.findall(r"^# (.+)\n\n(.+)\n", text)[0]
    picture = re.findall(r"^!(\[[^\]]+\]\([^)]+\))$", text, flags=re.MULTILINE)[0]
    return f"[!{picture}]({name}.md)<br>**[{title}]({name}.md).** {sentence}"


def write_index() -> None:
    cards = [card(name) for name in ORDER]
    cards += [""] * (-len(cards) % COLUMNS)
    rows = [" | ".join(cards[start : start + COLUMNS]) for start in range(0, len(cards), COLUMNS)]
    table = "\n".join(f"| {row} |" for row in ("   | " * (COLUMNS - 1), " | ".join(["---"] * COLUMNS), *rows))
    index = PAGES / "index.md"
    index.write_text(filled(index.read_text(), "cards", table))
    print(index.relative_to(ROOT))


def main(names: list[str]) -> None:
    for name in names or ORDER:
        refresh(name)
    write_index()


if __name__ == "__main__":
    main(sys.argv[1:])
