"""Programs of folders that are run and not installed (`benchmarks/`, `scripts/`, `docs/draw/`), as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def loaded(path: Path, *, name: str | None = None) -> ModuleType:
    """The module of a file, under its own name or another."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
