"""Do what a page of the documents says, as somebody does who has nothing but the wheel, and compare what is printed.

    python scripts/newcomer.py docs/first_hour.md dist

In an empty folder outside the checkout, with `dist/` beside it as the page has it: a Python block with a title becomes
the file of that name, every line of a `sh` block is run, and the `text` block that follows is what it must print. In
there, a line of `...` stands for any lines, and `...` within a line for any words: what differs from call to call.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
ANY = "..."
LONGEST_S = 600
# What the surroundings of the checkout would lend to a newcomer, who has none of it.
LENT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "COLUMNS")


class Step(NamedTuple):
    """A block of the page."""

    kind: str
    title: str | None
    text: str


def steps_of(page: str) -> list[Step]:
    """The blocks, in order."""
    return [Step(found["kind"], found["title"], found["text"]) for found in FENCE.finditer(page)]


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether it is what the page shows, `...` being anything.

    >>> is_as_shown("a\\nb\\nc 12 s\\n", "a\\n...\\nc ... s\\n")
    True
    >>> is_as_shown("a\\nb\\n", "a\\nc\\n")
    False
    """

    def pattern(line: str) -> str:
        if line.strip() == ANY:
            return r"(?:[^\n]*\n)*?"
        return ".*?".join(re.escape(part) for part in line.rstrip().split(ANY)) + r"[ \t]*\n"

    wanted = "".join(pattern(line) for line in shown.strip("\n").split("\n"))
    return re.fullmatch(wanted, printed.strip("\n") + "\n") is not None


def follow(page: Path, dist: Path, folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Every command with what it printed and what the page shows of it (None: nothing is shown)."""
    shutil.copytree(dist, folder / "dist")
    here = {name: value for name, value in os.environ.items() if name not in LENT}
    here |= {
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(ROOT / "requirements" / "base.txt"),  # the versions that the documents were made with
        "PIP_QUIET": "2",
        "PIP_NO_COMPILE": "0",  # that is "yes" to pip: most of what it installs is never imported here
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "80",
    }
    steps = steps_of(page.read_text(encoding="utf-8"))
    for place, step in enumerate(steps):
        if step.kind == "python" and step.title is not None:
            (folder / step.title).write_text(step.text, encoding="utf-8")
        if step.kind != "sh":
            continue
        after = steps[place + 1] if place + 1 < len(steps) else None
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.text],
            cwd=folder,
            env=here,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        if done.returncode:
            raise SystemExit(f"{step.text}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        yield step.text, done.stdout, after.text if after is not None and after.kind == "text" else None


def check(page: Path, dist: Path) -> int:
    """Follow the page; how many commands were run. What is not as shown ends it."""
    commands = 0
    with tempfile.TemporaryDirectory(prefix="newcomer-") as made:
        for command, printed, shown in follow(page, dist, Path(made)):
            commands += 1
            if shown is not None and not is_as_shown(printed, shown):
                raise SystemExit(f"{command}\nprints\n\n{printed}\nand {page.name} shows\n\n{shown}")
    return commands


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"{check(Path(sys.argv[1]), Path(sys.argv[2]))} commands print what {sys.argv[1]} shows")
