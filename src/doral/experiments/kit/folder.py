"""The folder that an experiment writes: finished parts, tables, figures, report."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from doral import _files
from doral.errors import InvalidValue

PARTS_FOLDER = "parts"
PART_KIND = ".npz"
_PART = re.compile(r"([0-9a-f]{8}-)?[0-9a-f]{32}\.npz")
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


# Parts would pile up. Two rules: before a run, those that another version has computed go, since no run of this version
# can go on from them, whatever its settings; after one that has ended well, those go that it did not ask for, of other
# settings or of runs that were given up. Files that are none of our parts stay in any case.


def part_name(key: str, *, versions: Mapping[str, str]) -> str:
    """The file of a part: who computed it, and its key."""
    return f"{_version_key(versions)}-{key}{PART_KIND}"


def remove_parts_of_other_versions(folder: Path, *, versions: Mapping[str, str]) -> None:
    """Before a run."""
    start = _version_key(versions)
    for path in _parts(folder):
        if not path.name.startswith(f"{start}-"):
            path.unlink(missing_ok=True)


def remove_other_parts(folder: Path, *, keep: Collection[str]) -> None:
    """After a run that has ended well."""
    for path in _parts(folder):
        if path.name not in keep:
            path.unlink(missing_ok=True)


def _version_key(versions: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(versions), sort_keys=True).encode()).hexdigest()[:8]


def _parts(folder: Path) -> list[Path]:
    """Those that we have written; earlier ones do not say which version made them."""
    found = (folder / PARTS_FOLDER).glob(f"*{PART_KIND}")
    return [path for path in found if _PART.fullmatch(path.name) and path.is_file()]
