"""Follow pages of the documents with nothing but the wheel, and compare what is printed with what they show.

    python scripts/newcomer.py dist docs/start/researcher.md docs/start/engineer.md ... [--update]

The wheel is installed into an empty environment outside the checkout. Each page has a folder of its own: a Python block
with a title becomes the file of that name, every `sh` block is run, and the `text` block after it is what it must
print. In there, a line of `...` stands for any lines, and `...` within a line for any words: what differs from call to
call. `--update` writes what was printed into the page, where it differs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
ANY = "..."
LONGEST_S = 600
# Variables of the checkout's environment that a newcomer does not have.
REMOVED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "COLUMNS")


class Step(NamedTuple):
    """A block of the page."""

    kind: str
    title: str | None
    text: str


def steps_of(page: str) -> list[Step]:
    """Return the blocks of a page, in order."""
    return [Step(block["kind"], block["title"], block["text"]) for block in FENCE.finditer(page)]


def is_as_shown(printed: str, shown: str) -> bool:
    """Return whether a command printed what the page shows, `...` being anything.

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


def install(dist: Path, folder: Path) -> dict[str, str]:
    """Install the wheel into an environment of its own; return the variables of a shell that uses it."""
    (wheel,) = dist.glob("*.whl")
    venv.create(folder / ".venv", with_pip=True)
    variables = {name: value for name, value in os.environ.items() if name not in REMOVED}
    variables |= {
        "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(ROOT / "requirements" / "base.txt"),  # the versions that the documents were made with
        "PIP_NO_COMPILE": "0",  # that is "yes" to pip: most of what it installs is never imported here
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "80",
    }
    subprocess.run([folder / ".venv" / "bin" / "pip", "install", "-qq", wheel], env=variables, check=True)
    return variables


def follow(page: Path, folder: Path, variables: dict[str, str], *, update: bool = False) -> int:
    """Run the commands of a page in a folder; return how many. What is not as shown ends it, or is updated."""
    text = page.read_text(encoding="utf-8")
    steps, commands = steps_of(text), 0
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.kind == "python" and step.title is not None:
            (folder / step.title).write_text(step.text, encoding="utf-8")
        if step.kind != "sh":
            continue
        commands += 1
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.text],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
        if done.returncode:
            raise SystemExit(f"{step.text}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        if after is None or after.kind != "text" or is_as_shown(done.stdout, after.text):
            continue
        if not update:
            raise SystemExit(f"{step.text}\nprints\n\n{done.stdout}\nand {page.name} shows\n\n{after.text}")
        text = text.replace(f"```text\n{after.text}```", f"```text\n{done.stdout.rstrip()}\n```")
        page.write_text(text, encoding="utf-8")
    return commands


def check(pages: Sequence[Path], dist: Path, *, update: bool = False) -> int:
    """Follow pages with the wheel in dist; return how many commands were run."""
    with tempfile.TemporaryDirectory(prefix="newcomer-") as made:
        root, commands = Path(made), 0
        variables = install(dist, root)
        for page in pages:
            folder = root / page.stem
            folder.mkdir()
            commands += follow(page, folder, variables, update=update)
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="the folder of the wheel")
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--update", action="store_true", help="write what was printed into the pages")
    given = parser.parse_args()
    commands = check(given.pages, given.dist, update=given.update)
    print(f"{commands} commands print what the pages show")


if __name__ == "__main__":
    sys.exit(main())
