"""What is released: built from the checkout, and tried by somebody who has nothing else."""

from __future__ import annotations

import os
import re
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import doral
from tests.programs import loaded

ROOT = Path(__file__).parent.parent.parent


def newcomer() -> ModuleType:
    return loaded(ROOT / "scripts" / "newcomer.py")


def wheel_of(dist: Path) -> zipfile.ZipFile:
    (path,) = dist.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_says_what_it_is(dist: Path) -> None:
    with wheel_of(dist) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = Parser().parsestr(wheel.read(metadata).decode())
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "doral").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".bc")
    }
    assert ours <= names
    assert "doral/py.typed" in names
    assert said["Version"] == doral.__version__
    assert {"postgres", "pandas", "serve"} <= set(said.get_all("Provides-Extra", []))
    assert "dev" not in said.get_all("Provides-Extra", [])
    assert any("Typed" in one for one in said.get_all("Classifier", []))


def test_the_source_archive_holds_what_tests_and_documents_need(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in (
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "Makefile",
        "docs/index.md",
        "tests/twin.py",
    ):
        assert wanted in names


def test_a_newcomer_sees_what_the_start_pages_show(dist: Path) -> None:
    """In an empty environment outside the checkout, with the wheel alone: every command, and what it prints."""
    pages = sorted((ROOT / "docs" / "start").glob("*.md"))
    assert len(pages) == 3
    assert newcomer().check(pages, dist) >= 6


def test_a_newcomer_is_told_where_a_page_is_wrong(tmp_path: Path) -> None:
    page, variables = tmp_path / "page.md", dict(os.environ)
    page.write_text("```sh\necho one\n```\n\n```text\ntwo\n```\n")
    with pytest.raises(SystemExit, match="page.md shows"):
        newcomer().follow(page, tmp_path, variables)
    assert newcomer().follow(page, tmp_path, variables, update=True) == 1
    assert newcomer().follow(page, tmp_path, variables) == 1
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(SystemExit, match="ended with 1"):
        newcomer().follow(page, tmp_path, variables)


def test_the_version_is_said_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert "version" in project["dynamic"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest is not None
    assert doral.__version__.startswith(newest[1])


def test_the_citation_can_be_read() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert said["cff-version"] == "1.2.0"
    assert said["license"] == "Apache-2.0"
    assert {one["family-names"] for one in said["references"][0]["authors"]} == {"Liu", "Maghsudi"}
