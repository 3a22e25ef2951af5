"""Settings of all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from hypothesis import settings

from tests.once import Once
from tests.tiers import is_slow
from tests.turns import in_turns

# No time limit per example: the first call of a kernel compiles it, and that takes seconds.
settings.register_profile("doral", deadline=None)
settings.load_profile("doral")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is made here stays to the end, millions of objects: nobody looks for garbage among them, now or later."""
    gc.disable()
    try:
        return (yield from _collected_in_turn(session))
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _collected_in_turn(session: pytest.Session) -> Generator[None, object, object]:
    """In a new checkout one worker reads all tests before the others do: its bytecode is theirs, too.

    Making it takes as long as all the rest of collecting, and all of them would make it at the same time.
    """
    folder = Path(cache_from_source(__file__)).parent
    made = folder / "all-tests-are-here"
    if not hasattr(session.config, "workerinput") or sys.dont_write_bytecode or made.exists():
        return (yield)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "all-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            found = yield
            made.touch()
            return found
    return (yield)


_cases: Counter[str] = Counter()


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_slow(item.nodeid, _cases):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = [items[i] for i in in_turns([item.nodeid for item in items], workers)]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    return Once(tmp_path_factory)


@pytest.fixture(scope="module")
def compiled_alone() -> Iterator[None]:
    """Kernels that a module calls from Python are programs of their own: compiled in a third of the time, called
    in a multiple of it.
    """
    from doral.compiled import Kernel
    from tests.alone import call_alone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", call_alone)
        yield
