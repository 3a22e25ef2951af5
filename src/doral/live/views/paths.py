"""Paths as callers give them."""

from __future__ import annotations

import os
from pathlib import Path

from doral.errors import InvalidValue


def given_path(path: object, *, suffixes: tuple[str, ...] = (), field: str = "path", is_text: bool = False) -> Path:
    """A path that a file can have; with one of these endings, where there are some.

    One that `is_text` can be kept in a database.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue(field, path, "must be a string or a Path")
    try:
        name = os.fsencode(path)
        is_possible = b"\0" not in name
        if is_text:
            name.decode()
    except UnicodeError:
        is_possible = False
    if not is_possible:
        raise InvalidValue(field, path, "must not contain characters that no file name can hold")
    checked = Path(os.fsdecode(path))
    if is_text and not checked.name:
        raise InvalidValue(field, str(checked), "must name a file")
    if suffixes and checked.suffix not in suffixes:
        raise InvalidValue(field, str(checked), f"must end in {' or '.join(suffixes)}")
    return checked
