"""The folder that an experiment writes: finished parts, tables, figures, report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from doral import _files
from doral.errors import InvalidValue

PARTS_FOLDER = "parts"
PART_KIND = ".npz"
CLAIMS_FILE = "claims.json"
SETTINGS_FILE = "settings.json"
REPORT_FILE = "report.html"


def check(folder: Path) -> None:
    """Complain before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise InvalidValue("out", str(folder), "must be a folder, and there is a file of that name")


def prepare(folder: Path) -> Path:
    """Make the folder; returns where finished parts are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / PARTS_FOLDER


def write_text(folder: Path, name: str, text: str) -> None:
    """One file of words."""
    _files.write_text(folder / name, text)


# What an earlier call with other settings has left would mislead next to new files: it is removed.


def write_figures(folder: Path, images: Mapping[str, bytes], *, names: Collection[str]) -> None:
    """Figures by the names of their files; of those in `names` (without endings) that are not there, none is left."""
    for name in names:
        for kind in ("png", "pdf"):
            if f"{name}.{kind}" not in images:
                (folder / f"{name}.{kind}").unlink(missing_ok=True)
    for name, content in images.items():
        _files.write_bytes(folder / name, content)


def write_tables(folder: Path, frames: Mapping[str, pl.DataFrame | None]) -> None:
    """Tables by name; of one that is not there this time, no file is left."""
    for name, frame in frames.items():
        path = folder / f"{name}.csv"
        if frame is not None:
            _files.write_text(path, frame.write_csv())
        else:
            path.unlink(missing_ok=True)


def remove_other_parts(folder: Path, *, keep: Collection[str]) -> None:
    """Parts of other settings or versions, which nobody will ask for again: they would pile up."""
    for path in (folder / PARTS_FOLDER).glob(f"*{PART_KIND}"):
        if path.name not in keep:
            path.unlink(missing_ok=True)
