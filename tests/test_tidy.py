"""Style as one test: a pass over all files that the repository holds."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# A word that is refused in what people read, and what to write instead.
REPLACEMENTS = {
    r"whoever": "the component, the user, the client",
    r"somebody": "a person, an arrival, a user",
    r"nobody": "no one who is named: the component that does not",
    r"everybody": "all arrivals, all users",
    r"clairvoyant": "oracle",
    r"(?:is|are|was|were) told": "gets, reads, is notified",
    r"what (?:comes|came) back": "answers, returned rewards",
    r"(?:came|comes) back": "is released (budget), returns (answers)",
    r"by lot": "at random",
    r"what became of": "the outcome of",
    r"kinds? of (?:person|people)": "context (code), group (pages)",
}
BANNED = re.compile(rf"\b(?:{'|'.join(REPLACEMENTS)})\b", re.IGNORECASE)
# Words of people in quotation marks, and words of earlier versions.
QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|```.*?```", re.DOTALL)
HISTORY = ("CHANGELOG.md", "benchmarks/peers/RESULTS.md", "docs/benchmarks.md")
MOST_MODULES = 16


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def findings(paths: Iterator[Path]) -> list[str]:
    """Every banned word, with its place."""
    found = []
    for path in paths:
        text = QUOTED.sub(lambda quote: "\n" * quote[0].count("\n"), path.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{name(path)}:{number}: {word[0]}" for word in BANNED.finditer(line)]
    return found


def test_what_people_read_has_no_banned_words() -> None:
    pages = (path for path in tracked() if path.suffix in (".md", ".html") and name(path) not in HISTORY)
    assert findings(pages) == []


def test_no_folder_is_crowded() -> None:
    folders = Counter(name(path.parent) for path in tracked() if name(path).startswith("src/") and path.suffix == ".py")
    folders -= Counter(dict.fromkeys(folders, 1))  # __init__.py
    assert {folder: number for folder, number in folders.items() if number > MOST_MODULES} == {}


def test_every_module_is_imported() -> None:
    """By another module, by a test, or by a script; otherwise it is dead."""
    python = [path for path in tracked() if path.suffix == ".py"]
    imported: set[str] = set()
    for path in python:
        package = list(path.relative_to(ROOT / "src").with_suffix("").parts) if "src" in path.parts else []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = ".".join([*package[: -node.level], node.module or ""]) if node.level else node.module or ""
                imported |= {base.rstrip(".")} | {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("doral."):
                imported.add(node.value.partition(":")[0])  # by import path, in a child process or in a table
    modules = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in python
        if name(path).startswith("src/")
        and path.stem not in ("__init__", "__main__")
        and "migrations" not in path.parts
    }
    assert modules - imported == set()


def test_nothing_is_left_over() -> None:
    left = [name(path) for path in tracked() if path.suffix in (".orig", ".rej", ".bak", ".tmp", ".pyc")]
    assert left == []
    large = [name(path) for path in tracked() if path.stat().st_size > 1_000_000]
    assert large == []
