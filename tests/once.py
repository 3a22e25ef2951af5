"""What takes long to make, and is only looked at: made once in a call of pytest, whatever the number of its workers.

Tests of one module are spread over the workers, and a fixture of the module or of the session is made by each of them.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


class Once:
    """`folder, found = once(name, make)`: who asks first calls `make(folder)`, the others wait and read what it found.

    The folder is for reading. Whoever wants to write makes a copy.
    """

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        own = factory.getbasetemp()
        self._root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # workers have folders side by side

    def __call__(self, name: str, make: Callable[[Path], T]) -> tuple[Path, T]:
        folder, kept = self._root / f"once-{name}", self._root / f"once-{name}.pickle"
        with (self._root / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one that failed: the next who asks is told why, too
                folder.mkdir()
                kept.write_bytes(pickle.dumps(make(folder)))
        found: T = pickle.loads(kept.read_bytes())
        return folder, found
