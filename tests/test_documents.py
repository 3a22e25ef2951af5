"""What the documents show runs as it is written: programs, commands, files, links."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

import doral
from doral.cli.app import app
from doral.cli.simulate import read_problem
from doral.simulation.scenario.files import read_scenario

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [text for named, text in fenced if named == language]


# Programs that other tests run: campaigns in tests/live, the service's in tests/service, the gallery's in
# tests/test_examples.py. Those of the first hour have titles, and are run in tests/release.
ELSEWHERE = ("docs/campaigns.md", "docs/howto/http.md", "docs/service.md", "docs/gallery/")
PROGRAMS = [name(page) for page in PAGES if blocks(page, "python") and not name(page).startswith(ELSEWHERE)]

# Something that the program of a page prints, where nothing else would show that it did what the page says.
SHOWN = {
    "docs/add_a_policy.md": "reward_mean",
    "docs/concepts/a_decisions_life.md": "kit 2.5\nreturned 2.0\ncancelled 98.0",
    "docs/concepts/silence_is_not_zero.md": "the truth:       0.82",
    "docs/howto/bring_a_log.md": "In 1 rows nothing was done",
    "docs/howto/choose_a_policy.md": "status-quo",
    "docs/howto/compare_fairly.md": "expected_difference_low",
    "docs/index.md": "reward_mean",
    "docs/people.md": "expected_share",
    "docs/plan.md": "expected_mean",
    "docs/problems.md": "is the truth",
}


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_run(page: str, tmp_path: Path) -> None:
    """All Python blocks of a page, in order, as one program in a fresh interpreter."""
    command = [sys.executable, "-c", "\n".join(blocks(ROOT / page, "python"))]
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=here)
    assert done.returncode == 0, done.stderr
    assert SHOWN.get(page, "") in done.stdout
    for shown in blocks(ROOT / page, "text"):
        assert shown in done.stdout


def test_what_programs_show_is_asked_of_pages_that_have_some() -> None:
    assert set(SHOWN) <= set(PROGRAMS)


def test_problem_files_are_read(tmp_path: Path) -> None:
    found = [text for page in PAGES for text in blocks(page, "toml")]
    assert len(found) >= 3
    for number, text in enumerate(found):
        file = tmp_path / f"{number}.toml"
        file.write_text(text)
        if "[problem]" in text:
            read_scenario(file)
        else:
            read_problem(file)


def commands() -> Iterator[str]:
    """Every line of a page that is a command of ours, in a block or in the text."""
    for page in PAGES:
        for block in blocks(page, ""):
            for line in block.splitlines():
                yield line.split("  #")[0].removeprefix(".venv/bin/").strip()
        yield from re.findall(r"`(doral [^`]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))


COMMANDS = sorted({line for line in commands() if re.match(r"doral \S", line)})


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str) -> None:
    """Names and options are those of the command line; nothing is run."""
    words = shlex.split(line.split(" > ")[0].split(" < ")[0].replace(" ...", "").removesuffix(" --help"))[1:]
    command = get_command(app)
    while isinstance(command, typer.core.TyperGroup) and words:
        found = command.commands.get(words[0])
        assert found is not None, f"no command {words[0]!r}"
        command, words = found, words[1:]
    if words:
        command.make_context("doral", words)


def test_commands_were_found() -> None:
    assert len(COMMANDS) > 20


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)}
    assert named - targets == set()
    assert {"setup", "test", "reproduce", "compare", "docs"} <= named


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_in_the_text_exist(page: Path) -> None:
    """`doral.policy("doral-otf", explore=0.02)` and its like, wherever they stand."""
    for call in re.findall(r"`(doral\.(?:policy|rival)\([^`]+\))`", page.read_text()):
        if "..." not in call:
            assert eval(call, {"doral": doral}) is not None, call


def anchor(heading: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def test_links_between_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in target:
                continue
            path, _, section = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), f"{name(page)} -> {target}"
            if section:
                headings = re.findall(r"^#+ (.*)$", there.read_text(), flags=re.MULTILINE)
                assert section in map(anchor, headings), f"{name(page)} -> {target}"


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    source, table = ROOT / "src" / "doral", text.partition("## Where do I change")[2]
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert len(named) > 100
    assert [one for one in named if not list(source.glob(f"**/{one.rstrip('/')}"))] == []
    assert [one for one in re.findall(r"`([\w/]+(?:\.py|/))`", table) if not (source / one).exists()] == []
