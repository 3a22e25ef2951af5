"""Every example runs as a newcomer would run it, prints what its page shows, and draws its picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = ROOT / "docs" / "gallery"
PICTURES = ROOT / "docs" / "img" / "gallery"
MOST_BYTES = 80_000  # of a picture on a page
WIDTH = 80  # of a terminal


def part(name: str, of: str) -> str:
    """What a page shows as the program, or as what it prints."""
    text = (PAGES / f"{of}.md").read_text()
    found = re.search(rf"<!-- {name} -->\n\n```\w+\n(.*?)^```\n\n<!-- end -->", text, flags=re.DOTALL | re.MULTILINE)
    assert found, f"docs/gallery/{of}.md shows no {name} part: run make gallery"
    return found.group(1)


def assert_is_drawn(picture: Path) -> None:
    """Large enough to be read, with something on it."""
    pixels = imread(picture)
    assert min(pixels.shape[:2]) >= 300
    assert np.mean(pixels[..., :3].min(axis=2) < 0.9) > 0.01, f"{picture.name} is nearly blank"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_page_shows(example: Path, tmp_path: Path) -> None:
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg"}
    command = [sys.executable, str(example)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == part("printed", of=example.stem).rstrip()
    assert max(map(len, done.stdout.splitlines())) <= WIDTH
    assert [path.name for path in tmp_path.iterdir()] == [f"{example.stem}.png"]
    assert_is_drawn(tmp_path / f"{example.stem}.png")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_a_page_is_up_to_date(example: Path) -> None:
    assert part("program", of=example.stem) == example.read_text(), "run make gallery"
    picture = PICTURES / f"{example.stem}.png"
    assert picture.stat().st_size < MOST_BYTES
    assert_is_drawn(picture)


def test_the_gallery_leads_to_every_example() -> None:
    """By its picture, its title and its first sentence; and to nothing that is not there."""
    index = (PAGES / "index.md").read_text()
    names = {path.stem for path in EXAMPLES}
    assert len(names) >= 8
    assert {path.stem for path in PAGES.glob("*.md")} == {*names, "index"}
    assert {path.stem for path in PICTURES.iterdir()} == names
    for name in names:
        title, sentence = re.findall(r"^# (.+)\n\n(.+)\n", (PAGES / f"{name}.md").read_text())[0]
        assert f"(../img/gallery/{name}.png)]({name}.md)<br>**[{title}]({name}.md).** {sentence}" in index, name
