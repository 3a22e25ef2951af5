"""The cache folder must never be the reason why nothing works."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from doral.compiled import Block, Program, cache, store
from tests.compiled.tiny import new_program, new_tree, sum_up


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("DORAL_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("DORAL_COMPILE", "lean")  # errors are heard of
    cache.cache_folder.cache_clear()
    yield
    cache.cache_folder.cache_clear()


def walked(program: Program) -> float:
    found: float = program["walk"](Block(new_tree()), 0)
    return found


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    folder = cache.cache_folder()
    assert folder is not None
    assert folder.is_relative_to(tmp_path)


def test_a_folder_that_cannot_be_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setenv("DORAL_CACHE_DIR", str(shared))
    theirs = cache.cache_folder()
    assert theirs is not None
    assert theirs.is_relative_to(shared)
    assert caplog.messages == []
    cache.cache_folder.cache_clear()

    def refuse(path: Path) -> None:
        if Path(path).is_relative_to(shared):
            raise PermissionError(13, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    other = cache.cache_folder()
    assert other is not None
    assert not other.is_relative_to(shared)
    assert len(caplog.messages) == 1
    assert "Operation not permitted; set DORAL_CACHE_DIR" in caplog.text


def test_old_code_is_removed_by_several_at_the_same_time(tmp_path: Path) -> None:
    for number in range(120):
        path = tmp_path / f"tiny-{number:024x}.code"
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "notes.txt").touch()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cache.remove_oldest, [tmp_path] * 8))
    kept = sorted(tmp_path.glob("*.code"))
    assert kept == [tmp_path / f"tiny-{number:024x}.code" for number in range(120 - 2 * cache.KEPT_FILES, 120)]
    assert (tmp_path / "notes.txt").exists()


def test_the_code_of_another_program_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    right = walked(new_program())
    (mine,) = tmp_path.glob("*.code")
    walked(new_program(sum_up))
    (other,) = set(tmp_path.glob("*.code")) - {mine}
    shutil.copy(other, mine)
    assert walked(new_program()) == right


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "no locks available")

    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert walked(new_program()) == walked(new_program())
    assert len(list(tmp_path.glob("*.code"))) == 1
