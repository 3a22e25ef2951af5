"""What is run must be ours: folders and files that nobody else could have written.

Ours is what belongs to this user or to root. Where files have no owners (Windows), folders of users are private anyway.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

HAS_OWNERS = hasattr(os, "geteuid")

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_THROUGH_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH
_FOR_READING = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file must not keep us waiting
)


def why_not_ours(folder: Path, *, others_may_add: bool = False) -> str | None:
    """What lets others decide what is in this folder; None if nothing does.

    Whoever may rename one of the folders above it may put another in its place: so the whole way is looked at, both
    as it is written and as it is without links. Give a folder without links (`resolve`) to what opens files in it.
    `others_may_add` is for a folder in which we only make one of our own: there it is enough that others cannot rename
    ours (the sticky bit).
    """
    if not HAS_OWNERS:
        return None
    for way in dict.fromkeys((folder.absolute(), folder.resolve())):
        is_closed = False  # a folder of ours above, which nobody else can pass
        for place in (*reversed(way.parents), way):
            try:
                found = place.lstat()
            except OSError as error:
                return f"{place}: {error.strerror}"
            if not _is_trusted(found.st_uid):
                return f"{place} belongs to another user ({found.st_uid})"
            if stat.S_ISLNK(found.st_mode):
                continue
            is_kept_by_owners = bool(found.st_mode & stat.S_ISVTX) and (others_may_add or place != way)
            if found.st_mode & _BY_OTHERS and not is_closed and not is_kept_by_owners:
                return f"others can write to {place} (chmod go-w would change that)"
            is_closed = is_closed or (found.st_uid == os.geteuid() and not found.st_mode & _THROUGH_BY_OTHERS)
    return None


def holds_only_ours(folder: Path) -> bool:
    """Whether everything in it, at any depth, belongs to us or to root; links are not followed."""
    if not HAS_OWNERS:
        return True
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process has finished it, or tidied it away
                if not _is_trusted(entry.stat(follow_symlinks=False).st_uid):
                    return False
                if entry.is_dir(follow_symlinks=False) and not holds_only_ours(Path(entry.path)):
                    return False
    return True


def read_ours(path: Path) -> bytes | None:
    """What the file holds, if nobody else could have written it; None otherwise, and where there is none.

    What is looked at is what was opened: nothing can be put in its place in between. The folder is looked at by
    `why_not_ours`.
    """
    return _read(path, also=None)


def read_beside(path: Path, source: Path) -> bytes | None:
    """The same for a file that was installed with a source that runs already: as much is trusted as that is."""
    try:
        return _read(path, also=source.stat())
    except OSError:
        return None


def _read(path: Path, *, also: os.stat_result | None) -> bytes | None:
    try:
        descriptor = os.open(path, _FOR_READING)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and _is_safe(found, also) else None


def _is_safe(found: os.stat_result, also: os.stat_result | None) -> bool:
    if not HAS_OWNERS:
        return True
    writable = found.st_mode & _BY_OTHERS
    if also is None:
        return _is_trusted(found.st_uid) and not writable
    return (_is_trusted(found.st_uid) or found.st_uid == also.st_uid) and not writable & ~also.st_mode


def _is_trusted(owner: int) -> bool:
    """Root could change this process anyway; to root, nobody else is trusted."""
    return owner in (0, os.geteuid())
