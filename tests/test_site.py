"""The documents as a site: it is built strictly, and then every page is looked at as a reader would."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from playwright.sync_api import sync_playwright
from scipy.optimize import linprog

import doral
from doral.engine.options import OPTION_NAMES
from tests.programs import loaded

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"


def load(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A program of a folder that is run, not installed."""
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setitem(sys.modules, path.stem, ModuleType(path.stem))  # whatever had its name is put back
    return loaded(path)


def test_the_site_is_whole() -> None:
    """One build: no warning, no dead link or anchor, no orphan, nothing fetched, no formula or directive left raw."""
    done = subprocess.run(
        [sys.executable, "scripts/site", "build"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    paper = (SITE / "paper.html").read_text()
    formulas = re.findall(r"(?<!\\)\$[^$\n]+\$", re.sub(r"`[^`\n]*`", "", (ROOT / "docs" / "paper.md").read_text()))
    assert len(formulas) > 40
    assert paper.count("<math") == len(formulas)
    for page, words in {
        "index": "Spend a limited budget",
        "changes": "0.1.0",
        "contributing": "One implementation of the algorithm",
        "reference/problem": "doral.Problem",
        "reference/policies": "exploration",
        "reference/command_line": "doral campaign decide",
    }.items():
        assert words in (SITE / f"{page}.html").read_text(), page
    assert json.loads((SITE / "openapi.json").read_text())["openapi"].startswith("3.1")
    index, whole = (SITE / "llms.txt").read_text(), (SITE / "llms-full.txt").read_text()
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", index, flags=re.MULTILINE)
    assert {page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html")} - set(linked) <= {"404.html"}
    assert all(f"<!-- {page.removesuffix('.html')}.md -->" in whole for page in linked if page != "changes.html")
    described = (SITE / "reference" / "policies.html").read_text()
    missing = [name for name in OPTION_NAMES if f'id="doral.engine.options.PolicyOptions.{name}"' not in described]
    assert missing == []
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium: whether the search works in a page that is opened from a folder was not tried")
    assert search_from_a_folder(chromium, "Kaplan") > 3


def search_from_a_folder(chromium: str, words: str) -> int:
    """How many results a reader gets who opens a page without a server and without a network, and searches."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        faults: list[str] = []
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.goto((SITE / "concepts" / "the_price.html").as_uri())
        page.locator(".md-search__button").first.click()
        page.keyboard.type(words, delay=20)
        found = page.get_by_text(re.compile(r"^\d+ results$")).first
        found.wait_for()
        number = int((found.text_content() or "0").split()[0])
        browser.close()
    assert faults == []
    return number


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    described = dict(re.findall(r'^::: (\S+)\n    options:\n      heading: "([^"]+)"', pages, re.MULTILINE))
    assert set(described.values()) >= {f"doral.{name}" for name in doral.__all__ if name != "__version__"}
    homes = {f"{getattr(doral, name).__module__}.{name}": f"doral.{name}" for name in doral._HOMES}
    assert {path: described[path] for path in homes} == homes


def test_faults_of_pages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawling = load(ROOT / "scripts" / "site" / "crawling.py", monkeypatch)
    (tmp_path / "index.html").write_text(
        '<a href="there.html#part">a</a><a href="gone.html">b</a><img src="gone.png">'
        '<script src="https://elsewhere.org/x.js"></script><link rel="stylesheet" href="//fonts.org/f.css">$x^2$'
    )
    (tmp_path / "there.html").write_text('<p id="other">fine</p><code>$HOME and $PATH$</code>')
    (tmp_path / "alone.html").write_text("<p>nobody comes here</p>")
    (tmp_path / "look.css").write_text("@font-face { src: url(https://fonts.org/f.woff2) }")
    found = "\n".join(crawling.complaints(tmp_path))
    for fault in (
        "there.html#part names a section",
        "gone.html leads nowhere",
        "gone.png is not there",
        "fetches https://elsewhere.org/x.js",
        "fetches //fonts.org/f.css",
        "'$x^2$' is left",
        "alone.html: no page leads there",
        "look.css: fetches",
    ):
        assert fault in found
    assert len(found.splitlines()) == 8


def test_formulas_become_mathml(monkeypatch: pytest.MonkeyPatch) -> None:
    from markdown import markdown

    formulas = load(ROOT / "scripts" / "site" / "formulas.py", monkeypatch)

    def made(text: str) -> str:
        return markdown(text, extensions=[formulas.Formulas(), "tables"])

    assert "<math" in made(r"where $\rho = B/T$ is")
    assert 'display="block"' in made("$$\\sum_j \\pi_j$$")
    assert made(r"| a |" "\n| --- |\n" r"| $\lvert S \rvert_2$ and $x_1 * y_1 * z$ |").count("<math") == 2
    assert "<math" not in made("from $5 to $6, `$x$`, and \\$y$")
    with pytest.raises(formulas.UnreadableFormula, match="nonsense"):
        made(r"$\nonsense{x}$")


def test_links_out_of_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    staging = load(ROOT / "scripts" / "site" / "staging.py", monkeypatch)
    source = ROOT / "docs" / "howto" / "x.md"

    def changed(text: str) -> str:
        linked: str = staging.links_for_the_site(text, source, staging.PAGES / "howto" / "x.md")
        return linked

    assert changed("[plan](../plan.md#reading)") == "[plan](../plan.md#reading)"
    assert changed("[changes](../../CHANGELOG.md)") == "[changes](../changes.md)"
    assert changed("[start](../../README.md)") == "[start](../index.md)"
    assert changed("[the code](../../src/doral/person.py)") == "the code (`src/doral/person.py`)"
    assert changed("[`person.py`](../../src/doral/person.py)") == "`src/doral/person.py`"
    assert changed("```\n[x](../../CHANGELOG.md)\n```") == "```\n[x](../../CHANGELOG.md)\n```"


def test_drawings_are_those_of_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes from the same numbers; and the price that is drawn is that of the linear program."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "draw"))
    for name, draw in load(ROOT / "docs" / "draw" / "__main__.py", monkeypatch).DRAWN.items():
        assert (ROOT / "docs" / "img" / "concepts" / f"{name}.svg").read_text() == draw().svg(), "make docs-figures"
    price = load(ROOT / "docs" / "draw" / "price.py", monkeypatch)
    pairs = [(context, arm) for context in price.SHARES for arm in price.COSTS]
    spent = [price.SHARES[context] * price.COSTS[arm] for context, arm in pairs]
    at_most_one = [[float(context == other) for other, _ in pairs] for context in price.SHARES]
    for rate in (0.3, price.RATE, 1.4, 2.0):
        solved = linprog(
            [-price.SHARES[context] * price.WORTH[context][arm] for context, arm in pairs],
            A_ub=[spent, *at_most_one],
            b_ub=[rate, *(1.0 for _ in price.SHARES)],
        )
        assert price.price(rate) == pytest.approx(-solved.ineqlin.marginals[0])
