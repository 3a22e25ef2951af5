"""Laws of people in words: what decides the numbers that they draw."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from pathlib import Path
from typing import Any

from doral.simulation.scenario.crowd import Crowd, Table


def described(value: Any) -> Any:
    """In values that JSON can hold: a table by its digest, a law by its name, its fields and the file that it is in."""
    if isinstance(value, Table):
        return {"shape": list(value.numbers.shape), "digest": value.digest}
    if isinstance(value, Crowd):
        return {"people": value.size, "features": list(value.columns), "digest": value.digest}
    if not callable(value):
        return value
    home = value if inspect.isroutine(value) else type(value)
    name = f"{home.__module__}.{home.__qualname__}"
    fields: dict[str, Any] = {}
    if dataclasses.is_dataclass(value):
        fields = {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    return {"law": name, **fields, "source": source_of(home)}


def _plain(value: object) -> Any:
    if isinstance(value, Table | Crowd) or callable(value):
        return described(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def source_of(home: Any) -> str:
    """A digest of the file in which a law is written; of none where it was written in no file."""
    try:
        path = inspect.getsourcefile(home)
    except (TypeError, OSError):  # the latter: a class of a notebook
        path = None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path and Path(path).is_file() else ""
