"""Files are whole or absent: with failing writers, killed processes and full disks."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from doral import _files

SLOW_WRITER = """
import sys, time
from doral import _files
with _files.replacing(sys.argv[1]) as file:
    file.write(b"half of the new")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""

BIG_WRITER = """
import sys
from doral import _files
try:
    _files.write_bytes(sys.argv[1], bytes(1_000_000))
except OSError as error:
    print(error.filename)
    sys.exit(7)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    _files.write_text(path, "a\n")
    _files.write_text(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failing_writer_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def write_half() -> None:
        with _files.replacing(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "table.csv"
    with pytest.raises(FileNotFoundError) as caught:
        _files.write_text(path, "a")
    assert caught.value.filename == str(path)


def test_a_folder_in_the_way_stays(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.mkdir()
    with pytest.raises(OSError, match="table.csv"):
        _files.write_text(path, "a")
    assert names(tmp_path) == ["table.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_a_device_or_a_pipe_in_the_way_stays(tmp_path: Path) -> None:
    """Who is root would replace /dev/null for the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="Not a regular file") as caught:
            _files.write_text(tmp_path / name, "a")
        assert caught.value.filename == str(tmp_path / name)
    assert (tmp_path / "pipe").is_fifo()
    assert names(tmp_path) == ["link", "pipe"]


def test_permissions_are_those_of_any_file(tmp_path: Path) -> None:
    path, ordinary = tmp_path / "ours", tmp_path / "theirs"
    _files.write_text(path, "a")
    ordinary.write_text("a")
    assert path.stat().st_mode == ordinary.stat().st_mode
    path.chmod(0o600)
    _files.write_text(path, "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    _files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    writer = subprocess.Popen(
        [sys.executable, "-c", SLOW_WRITER, str(path)], stdout=subprocess.PIPE, env=_environment()
    )
    assert writer.stdout is not None
    with writer.stdout:
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=30)
    assert path.read_text() == "old"
    left = [name for name in names(tmp_path) if name != "table.csv"]
    assert len(left) == 1

    changed_s = (tmp_path / left[0]).stat().st_mtime
    _files.remove_unfinished(tmp_path, older_than_s=60.0, now_s=changed_s + 59)
    assert len(names(tmp_path)) == 2
    _files.remove_unfinished(tmp_path, older_than_s=60.0, now_s=changed_s + 61)
    assert names(tmp_path) == ["table.csv"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [sys.executable, "-c", BIG_WRITER, str(path)],
        preexec_fn=no_room,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (7, str(path)), done.stderr
    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.csv"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
