"""Attacks by other users of the machine: what they planted is never run, what is theirs is never removed."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from doral.compiled import Block, store
from tests.compiled.tiny import new_program, new_tree, sum_up

SOMEBODY, SOMEBODY_ELSE, WITHOUT_A_NAME = 65534, 65533, 54321
ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can act as other users")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that others can look into, as tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix="attacked-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def fresh(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DORAL_CACHE_DIR", str(place / "cache"))
    monkeypatch.setenv("DORAL_COMPILE", "lean")
    forget = store.cache_folder.cache_clear
    forget()
    yield
    forget()


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """The name under which the code of a program is looked for, and the code of another one, made to look like it."""
    folder = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "cache_folder", lambda: folder)
        walked()
        (name,) = (path.name for path in folder.glob("*.code"))
        new_program(sum_up)["walk"]
        (other,) = (path for path in folder.glob("*.code") if path.name != name)
    code = other.read_bytes()[32:]
    return name, hashlib.sha256(name.encode() + code).digest() + code


HONEST, PLANTED = 31.0, 100.0


def walked() -> float:
    found: float = new_program()["walk"](Block(new_tree()), 0)
    return found


def plant(folder: Path, attack: tuple[str, bytes], owner: int = 0) -> Path:
    name, data = attack
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    path.chmod(0o600)
    os.chown(path, owner, owner)
    return path


def kernels(root: Path) -> Path:
    return root / "code"


def found_folder() -> Path:
    folder = store.cache_folder()
    assert folder is not None
    return folder


def test_the_attack_would_work(place: Path, attack: tuple[str, bytes]) -> None:
    plant(kernels(place / "cache"), attack)
    assert walked() == PLANTED


def test_a_file_of_somebody_else(place: Path, attack: tuple[str, bytes]) -> None:
    folder = found_folder()
    assert folder == kernels(place / "cache")
    planted = plant(folder, attack, SOMEBODY)
    assert walked() == HONEST
    assert planted.stat().st_uid == 0  # ours has taken its place
    assert planted.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write(mode: int, attack: tuple[str, bytes]) -> None:
    plant(found_folder(), attack).chmod(mode)
    assert walked() == HONEST


def test_a_link_in_the_place_of_a_file(place: Path, attack: tuple[str, bytes]) -> None:
    planted = plant(place / "elsewhere", attack)
    (found_folder() / planted.name).symlink_to(planted)
    assert walked() == HONEST
    assert planted.read_bytes() == attack[1]


def test_a_pipe_in_the_place_of_a_file(attack: tuple[str, bytes]) -> None:
    os.mkfifo(found_folder() / attack[0], mode=0o600)
    assert walked() == HONEST


@pytest.mark.parametrize("which", ["cache/kernels", "cache", "."])
def test_a_folder_of_somebody_else(
    which: str, place: Path, attack: tuple[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    folder = kernels(place / "cache")
    planted = plant(folder, attack)  # even with a file of ours, which he may have found somewhere
    theirs = {"cache/kernels": folder, "cache": place / "cache", ".": place}[which]
    os.chown(theirs, SOMEBODY, SOMEBODY)
    assert walked() == HONEST
    assert planted.read_bytes() == attack[1]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{theirs} belongs to another user (65534); set DORAL_CACHE_DIR" in caplog.text
    assert store.cache_folder() is None


@pytest.mark.parametrize(
    ("which", "mode", "is_used"),
    [
        ("kernels", 0o755, True),
        ("kernels", 0o770, False),
        ("kernels", 0o707, False),
        ("kernels", 0o1777, False),  # others can add files
        ("cache", 0o775, False),
        ("cache", 0o1777, True),  # others can neither rename nor remove ours
        (".", 0o775, False),
        (".", 0o757, False),
        (".", 0o1777, True),
    ],
)
def test_folders_that_others_can_write(
    which: str, mode: int, is_used: bool, place: Path, attack: tuple[str, bytes]
) -> None:
    planted = plant(kernels(place / "cache"), attack)
    {"kernels": planted.parent, "cache": place / "cache", ".": place}[which].chmod(mode)
    assert walked() == (PLANTED if is_used else HONEST)


def test_behind_a_closed_door_modes_do_not_matter(place: Path, attack: tuple[str, bytes]) -> None:
    """As with a umask of 002 and a home that is closed to others."""
    plant(kernels(place / "cache"), attack)
    (place / "cache").chmod(0o775)
    place.chmod(0o700)
    assert walked() == PLANTED


def test_nothing_is_made_in_what_is_not_ours(place: Path) -> None:
    (place / "cache").mkdir()
    os.chown(place / "cache", SOMEBODY, SOMEBODY)
    assert store.cache_folder() is None
    assert list((place / "cache").iterdir()) == []


def test_a_link_to_a_folder(place: Path, attack: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "real").mkdir()
    (place / "cache").symlink_to("real")
    assert found_folder() == kernels(place / "real")
    (place / "cache").unlink()
    (place / "cache").symlink_to("theirs")  # what was found stays
    plant(kernels(place / "theirs"), attack)
    assert walked() == HONEST
    os.chown(place / "cache", SOMEBODY, SOMEBODY, follow_symlinks=False)
    store.cache_folder.cache_clear()
    assert store.cache_folder() is None
    monkeypatch.setenv("DORAL_CACHE_DIR", str(place / "loop"))
    (place / "loop").symlink_to("loop")
    store.cache_folder.cache_clear()
    assert store.cache_folder() is None


def test_a_folder_that_is_opened_to_others_later(place: Path, attack: tuple[str, bytes]) -> None:
    plant(found_folder(), attack)
    (place / "cache").chmod(0o777)
    assert walked() == HONEST


def test_what_is_made_is_for_us_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_CACHE_DIR", str(place / "a" / "b"))
    earlier = os.umask(0)
    try:
        walked()
    finally:
        os.umask(earlier)
    made = [place / "a", *(place / "a").rglob("*")]
    assert {path.name.split(".")[-1] for path in made} >= {"a", "b", "code", "lock"}
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700, 0o600}


PROGRAM = """
import os, sys
from doral.compiled import Block
from doral.compiled.store import cache_folder
from tests.compiled.tiny import new_program, new_tree, sum_up

# Imports all that it takes: Python itself may be in root's home.
new_program(sum_up)["walk"](Block(new_tree()), 0)
sum_up(new_tree(), 0)
cache_folder.cache_clear()
uid, *more = sys.argv[1:]
del os.environ["DORAL_CACHE_DIR"]
os.environ.update(pair.split("=", 1) for pair in more)
os.setgroups([])
os.setgid(int(uid))
os.setuid(int(uid))
print(new_program()["walk"](Block(new_tree()), 0), cache_folder())
"""


def as_user(uid: int, place: Path, *, way: str, cache_dir: Path | None = None) -> tuple[float, str, list[str]]:
    """The value, the folder and what was said, of another user, whose home is not there."""
    for_root = tempfile.mkdtemp(dir=place)  # new: it compiles, and so imports what compiles
    first = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "DORAL_CACHE_DIR": for_root}
    then = ["HOME=/nowhere", f"DORAL_COMPILE={way}"]
    if cache_dir is not None:
        then.append(f"DORAL_CACHE_DIR={cache_dir}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(uid), *then], env=first, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    value, folder = done.stdout.split()
    return float(value), folder, done.stderr.splitlines()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_shared_folder(mode: int, place: Path, attack: tuple[str, bytes]) -> None:
    shared = place / "cache"
    planted = plant(kernels(shared), attack, SOMEBODY_ELSE)
    planted.chmod(0o644)
    planted.parent.chmod(0o777)
    os.chown(planted.parent, SOMEBODY_ELSE, SOMEBODY_ELSE)
    shared.chmod(mode)
    value, folder, said = as_user(SOMEBODY, place, way="lean", cache_dir=shared)
    assert value == HONEST
    assert folder == "None"
    assert len(said) == 1
    assert f"compiled code is not kept: {shared if mode == 0o777 else planted.parent}" in said[0].replace(
        "others can write to ", ""
    )
    assert planted.read_bytes() == attack[1]


@pytest.mark.parametrize("way", ["lean", "plain"])
def test_a_user_without_name_or_home(way: str, place: Path) -> None:
    value, folder, said = as_user(WITHOUT_A_NAME, place, way=way)
    assert (value, folder) == (HONEST, "None")
    assert len(said) == 1
    (place / "own").mkdir()
    os.chown(place / "own", WITHOUT_A_NAME, WITHOUT_A_NAME)
    own = place / "own" / "cache"
    value, folder, said = as_user(WITHOUT_A_NAME, place, way=way, cache_dir=own)
    assert (value, Path(folder), said) == (HONEST, kernels(own), [])
    assert len(list(kernels(own).rglob("*.code"))) == (1 if way == "lean" else 0)


def test_where_files_have_no_owners(place: Path, attack: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "HAS_OWNERS", False)
    monkeypatch.delattr(os, "geteuid")
    plant(kernels(place / "cache"), attack)
    assert walked() == PLANTED
