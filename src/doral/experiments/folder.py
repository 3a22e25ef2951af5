"""The folder that an experiment writes: finished parts, tables, figures, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from doral import _files
from doral.errors import InvalidValue

PARTS_FOLDER = "parts"
REPORT_FILE = "report.html"


def check(folder: Path) -> None:
    """Complain before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise InvalidValue("out", str(folder), "must be a folder, and there is a file of that name")


def prepare(folder: Path) -> Path:
    """Make the folder; returns where finished parts are kept."""
    check(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / PARTS_FOLDER


def write_figures(folder: Path, images: Mapping[str, bytes]) -> None:
    """Figures by the names of their files."""
    for name, content in images.items():
        _files.write_bytes(folder / name, content)


def write_tables(folder: Path, frames: Mapping[str, pl.DataFrame | None]) -> None:
    """Tables by name. One that is not there this time is removed, together with its figure:
    from an earlier call with other settings, next to the new files, it would mislead."""
    for name, frame in frames.items():
        if frame is not None:
            _files.write_text(folder / f"{name}.csv", frame.write_csv())
        else:
            remove(folder, name)


def remove(folder: Path, name: str) -> None:
    """The files of one table or figure."""
    for kind in ("csv", "png", "pdf"):
        (folder / f"{name}.{kind}").unlink(missing_ok=True)
