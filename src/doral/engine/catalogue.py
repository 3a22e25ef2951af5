"""The pieces that there are, found by the folder: nobody keeps a list."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from doral.engine import pieces

_DEFAULTS = "defaults"


def _modules(package: ModuleType) -> dict[str, tuple[ModuleType, bool]]:
    return {
        info.name: (importlib.import_module(f"{package.__name__}.{info.name}"), info.ispkg)
        for info in pkgutil.iter_modules(package.__path__)
    }


_FOUND = _modules(pieces)

# Folders: places that exactly one of the alternatives takes.
PLACES: Mapping[str, Any] = {name: module for name, (module, is_folder) in _FOUND.items() if is_folder}

# Every piece by its name, such as "race" or "learn.returned".
PIECES: Mapping[str, Any] = {
    **{name: module for name, (module, is_folder) in _FOUND.items() if not is_folder and name != _DEFAULTS},
    **{f"{place}.{name}": module for place in PLACES for name, (module, _) in _modules(PLACES[place]).items()},
}

DEFAULTS: Any = _FOUND[_DEFAULTS][0]


def words(place: Any) -> tuple[str, ...]:
    """The words by which the alternatives of a place are chosen."""
    alternatives = [info.name for info in pkgutil.iter_modules(place.__path__)]
    hidden = getattr(place, "HIDDEN", ())
    also = (*getattr(place, "ALSO", ()), *([place.EMPTY] if hasattr(place, "EMPTY") else []))
    return (*also, *(name for name in alternatives if name not in hidden))
