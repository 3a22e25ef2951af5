"""The cache folder must never be the reason why nothing works."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from doral.compiled import Block, Program, store
from doral.compiled.interpret import TRIES, Interpreter
from tests.compiled.tiny import new_program, new_tree, sum_up


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DORAL_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("DORAL_COMPILE", "lean")  # errors are raised
    forget = store.cache_folder.cache_clear
    forget()
    store._temporary_folder.cache_clear()
    yield
    forget()
    store._temporary_folder.cache_clear()


def walked(program: Program) -> float:
    found: float = program["walk"](Block(new_tree()), 0)
    return found


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    assert store.cache_folder() is None
    assert walked(new_program()) == walked(new_program())
    assert "home directory.; set DORAL_CACHE_DIR" in caplog.text


def test_a_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DORAL_CACHE_DIR", str(tmp_path / "cache"))

    def refuse(path: Path, mode: int = 0o777) -> None:
        raise PermissionError(30, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert store.cache_folder() is None
    assert not new_program().is_kept
    assert walked(new_program()) == walked(new_program())
    assert len(caplog.messages) == 1
    assert "Read-only file system" in caplog.text


def test_a_folder_that_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in the image of a container: what is in it is run, and what is missing is compiled by each process."""
    monkeypatch.setenv("DORAL_CACHE_DIR", str(tmp_path))
    value = walked(new_program())

    monkeypatch.setattr(os, "access", lambda *_: False)
    with monkeypatch.context() as patch:
        patch.setattr(store, "compile_program", None)
        assert walked(new_program()) == value
    before = sorted(tmp_path.rglob("*.code"))
    assert walked(new_program(sum_up)) == 100.0
    assert sorted(tmp_path.rglob("*.code")) == before
    assert caplog.messages == []


def test_a_child_compiles_for_a_process_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_CACHE_DIR", "/proc/nowhere")
    monkeypatch.delenv("DORAL_COMPILE")
    program = new_program()
    interpreter = Interpreter(program, "from tests.compiled.tiny import new_program; new_program().load()")
    assert interpreter.start()
    first = interpreter._child
    assert first is not None
    first.kill()  # as for want of memory
    first.wait()
    assert not interpreter.is_over
    second = interpreter._child
    assert second is not None
    assert second.pid != first.pid
    assert second.wait(120) == 0
    monkeypatch.setattr(store, "compile_program", None)
    assert program.is_at_hand
    assert walked(program) == walked(new_program())
    assert not program.is_interpreted


def test_calls_stay_interpreted_when_every_child_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DORAL_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.delenv("DORAL_COMPILE")
    store.cache_folder.cache_clear()
    program = new_program()
    interpreter = Interpreter(program, "import time; time.sleep(60)")
    assert interpreter.start()
    for _ in range(TRIES):
        child = interpreter._child
        assert child is not None
        child.kill()
        child.wait()
        assert not interpreter.is_over
    monkeypatch.setattr(store, "compile_program", None)
    assert interpreter["walk"](Block(new_tree()), 0) > 0.0
    store.cache_folder.cache_clear()


def test_a_killed_process_leaves_nothing_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(Path, "replace", lambda *_: sys.exit("killed"))
    with pytest.raises(SystemExit):
        walked(new_program())
    left = [path for path in tmp_path.iterdir() if path.suffix not in (".code", ".lock")]
    assert len(left) == 1
    monkeypatch.setattr(store, "KEPT_FILES", 0)
    store.remove_oldest(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_old_code_is_removed_by_several_at_the_same_time(tmp_path: Path) -> None:
    for number in range(120):
        path = tmp_path / f"tiny-{number:024x}.code"
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "notes.txt").touch()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.remove_oldest, [tmp_path] * 8))
    kept = sorted(tmp_path.glob("*.code"))
    assert kept == [tmp_path / f"tiny-{number:024x}.code" for number in range(120 - 2 * store.KEPT_FILES, 120)]
    assert (tmp_path / "notes.txt").exists()


def test_the_code_of_another_program_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    right = walked(new_program())
    (mine,) = tmp_path.glob("*.code")
    walked(new_program(sum_up))
    (other,) = set(tmp_path.glob("*.code")) - {mine}
    shutil.copy(other, mine)
    assert walked(new_program()) == right


def test_a_folder_in_the_place_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    value = walked(new_program())
    (code,) = tmp_path.glob("*.code")
    for path in (code, code.with_suffix(".lock")):
        path.unlink()
        path.mkdir()
    assert walked(new_program()) == value


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "no locks available")

    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert walked(new_program()) == walked(new_program())
    assert len(list(tmp_path.glob("*.code"))) == 1
