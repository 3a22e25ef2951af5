"""A page as a file: there whole or not at all, and never in the place of something else."""

from __future__ import annotations

import re
from pathlib import Path

from doral._files import replacing
from doral.errors import InvalidValue, shown
from doral.live.errors import StorageError
from doral.live.views.files import given_path
from doral.pages.shell import asset

_SUFFIXES = (".html", ".htm")
_READ_BYTES = 100_000
_LONGEST_NAME = 80


def page_name(campaign: str, ending: str = ".html") -> str:
    """A file for a campaign: its name, as far as files can be called so.

    >>> page_name("clinic kits"), page_name("../a/b"), page_name("<>", "-report.json")
    ('clinic kits.html', 'a-b.html', 'campaign-report.json')
    """
    plain = re.sub(r"[^\w .()+-]+", "-", campaign).strip(" .-")
    while len(plain.encode()) > _LONGEST_NAME:
        plain = plain[:-1]
    return f"{plain or 'campaign'}{ending}"


def page_path(path: object) -> Path:
    """Where a page may be written: nothing is there, or a page of before."""
    found = given_path(path, suffixes=_SUFFIXES)
    mark = asset("page.css", package="doral.live.page").splitlines()[0].encode()
    try:
        if found.is_dir():
            raise InvalidValue("path", str(found), "is a folder: name a file in it")
        if found.exists():
            if not found.is_file():  # a pipe would be waited for
                raise InvalidValue("path", str(found), "is there, and is no file: give another name")
            with found.open("rb") as file:
                is_page = mark in file.read(_READ_BYTES)
            if not is_page:
                raise InvalidValue("path", str(found), "is there, and is no page of a campaign: give another name")
    except OSError as error:
        raise StorageError(f"path = {shown(str(found))}: {error.strerror or error}") from error
    return found


def write_page(path: Path, text: str) -> None:
    """For its owner alone, if it is new: it tells of decisions and of people."""
    try:
        with replacing(path, is_private=True) as file:
            file.write(text.encode())
    except OSError as error:
        remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
        raise StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}") from error
