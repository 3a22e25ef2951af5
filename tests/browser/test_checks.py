"""The checks find what they are there to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import checks, chromium
from tests.browser.conftest import Open

HEAD = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A page</title></head>'
GOOD = HEAD + "<body><main><h1>Fine</h1><p>Words <code>and</code> more</p><button>Press</button></main></body></html>"
BAD: dict[str, tuple[checks.Check, str, str]] = {
    "words on words": (
        checks.no_overlapping_text,
        '<p style="position: absolute; top: 100px">one of them</p><p style="position: absolute; top: 104px">other</p>',
        "one of them",
    ),
    "words on words of a picture": (
        checks.no_overlapping_text,
        '<svg width="300" height="90"><text x="9" y="40">legend</text><text x="20" y="44">title</text></svg>',
        "legend",
    ),
    "a torn word": (
        checks.no_broken_words,
        '<p style="width: 30px; overflow-wrap: anywhere">a (skipped) word</p>',
        "skipped",
    ),
    "a wide page": (checks.nothing_wider_than_screen, '<div style="width: 900px">wide</div>', "on a screen of 390"),
    "no way to a button": (checks.keyboard_reachable, '<button tabindex="-1">hidden</button>', "hidden"),
    "no focus to be seen": (checks.keyboard_reachable, '<button style="outline: none">dim</button>', "dim"),
    "pale words": (checks.axe_clean, '<p style="color: #ccc; background: #fff">pale</p>', "color-contrast"),
    "an error": (checks.no_console_errors, "<script>null.nothing</script>", "nothing"),
    "a picture from afar": (checks.no_console_errors, '<img alt="far" src="https://example.org/a.png">', "example.org"),
}


def _opened(body: str, folder: Path, open_page: Open) -> checks.Opened:
    path = folder / "page.html"
    path.write_text(body, encoding="utf-8")
    return open_page(path, 390, "light")


def test_a_good_page_has_no_complaints(tmp_path: Path, open_page: Open) -> None:
    opened = _opened(GOOD, tmp_path, open_page)
    assert [words for check in checks.ALL for words in check(opened)] == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_page_is_found_out(name: str, tmp_path: Path, open_page: Open) -> None:
    check, body, word = BAD[name]
    complaints = check(_opened(f"{HEAD}<body><main><h1>Bad</h1>{body}</main></body></html>", tmp_path, open_page))
    assert any(word in one for one in complaints), complaints


def test_words_that_are_hidden_or_clipped_lie_on_nothing(tmp_path: Path, open_page: Open) -> None:
    body = (
        '<div style="position: relative; height: 3em"><p style="position: absolute; margin: 0">seen</p>'
        '<p style="position: absolute; margin: 0; opacity: 0">faint</p>'
        '<p style="position: absolute; margin: 0; visibility: hidden">hidden</p></div>'
        '<div style="width: 60px; overflow: hidden; white-space: nowrap; float: left">much longer than its frame</div>'
        "<p>next to it</p>"
    )
    opened = _opened(f"{HEAD}<body><main><h1>Fine</h1>{body}</main></body></html>", tmp_path, open_page)
    assert checks.no_overlapping_text(opened) == []


def test_a_browser_is_found_by_its_name_or_not_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "chromium"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(chromium.VARIABLE, raising=False)
    assert chromium.find() == str(own)
    monkeypatch.setenv(chromium.VARIABLE, str(tmp_path / "other"))
    assert chromium.find() is None
