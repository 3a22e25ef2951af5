"""Paths as callers give them."""

from __future__ import annotations

import os
from pathlib import Path

from doral.errors import InvalidValue


def given_path(path: object, *, suffixes: tuple[str, ...] = ()) -> Path:
    """A path that a file can have; with one of these endings, where there are some."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue("path", path, "must be a string or a Path")
    try:
        is_possible = b"\0" not in os.fsencode(path)
    except UnicodeError:
        is_possible = False
    if not is_possible:
        raise InvalidValue("path", path, "must not contain characters that no file name can hold")
    checked = Path(os.fsdecode(path))
    if suffixes and checked.suffix not in suffixes:
        raise InvalidValue("path", str(checked), f"must end in {' or '.join(suffixes)}")
    return checked
